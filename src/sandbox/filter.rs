//! The system calls that a confined action has no use for: they reach the kernel where it broke before, or other processes.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The filters.
#[derive(Clone, Debug)]
pub(super) struct CallFilters {
    /// What is refused.
    refused: BpfProgram,
    /// What is not there: programs then take another way.
    absent: BpfProgram,
}

impl CallFilters {
    /// Returns them in the bytes that the kernel reads.
    pub(super) fn in_bytes(&self) -> [Vec<u8>; 2] {
        [bytes(&self.refused), bytes(&self.absent)]
    }

    /// Lets them hold for this thread, and for what it starts from now on.
    ///
    /// # Errors
    /// The kernel does not take them.
    pub(super) fn apply(&self) -> Result<(), seccompiler::Error> {
        seccompiler::apply_filter(&self.absent)?;
        seccompiler::apply_filter(&self.refused)
    }
}

/// The numbers of x32 calls begin here. That ABI shares the architecture, so its calls have to be named, too.
const X32: i64 = 0x4000_0000;

/// `open_tree`, `move_mount`, `fsopen`, `fsconfig`, `fsmount`, `fspick`, `pidfd_getfd`, `process_madvise`,
/// `mount_setattr`. Calls of these years have the same number on every architecture, and not every C library has names
/// for them.
const REFUSED_EVERYWHERE: [i64; 9] = [428, 429, 430, 431, 432, 433, 438, 440, 442];

/// `io_uring_setup`, `io_uring_enter`, `io_uring_register`, `clone3`.
const ABSENT_EVERYWHERE: [i64; 4] = [425, 426, 427, 435];

/// Puts a character into the input of a terminal, as if it were typed.
const TIOCSTI: u64 = 0x5412;

/// Pastes into a console.
const TIOCLINUX: u64 = 0x541c;

/// Makes the filters of this machine's architecture.
///
/// # Errors
/// The architecture is not known, so nothing can be filtered.
pub(super) fn filters() -> Result<CallFilters, BackendError> {
    Ok(CallFilters {
        refused: compiled(refused()?, libc::EPERM.unsigned_abs())?,
        absent: compiled(absent(), libc::ENOSYS.unsigned_abs())?,
    })
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compiled(mut rules: Rules, error: u32) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    if arch == TargetArch::x86_64 {
        let foreign: Rules = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(foreign);
    }
    // A list of what is allowed would have to know every program that an action may be. Calls of a foreign ABI, such as that of
    // 32 bits, end the process: seccompiler sees to it.
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error), arch)?.try_into()
}

/// Without conditions, a call is refused whatever its arguments are.
fn refused() -> Result<Rules, BackendError> {
    let always = [
        // Other processes, and their memory.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_kcmp,
        // Keyrings belong to no namespace.
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        // Parts of the kernel through which it was broken before.
        libc::SYS_userfaultfd,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        // What would lead out of the mounts and the namespaces.
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_setns,
        // Opens files by a number, past every mount.
        libc::SYS_open_by_handle_at,
        libc::SYS_quotactl,
        libc::SYS_swapon,
        libc::SYS_syslog,
    ];
    let mut rules: Rules =
        always.into_iter().chain(REFUSED_EVERYWHERE).map(|call| (call, Vec::new())).collect();
    // In a user namespace of its own an action has all capabilities, and reaches what they open in
    // the kernel.
    let new_user = i64::from(libc::CLONE_NEWUSER).unsigned_abs();
    rules.insert(libc::SYS_unshare, vec![SeccompRule::new(vec![has_bits(0, new_user)?])?]);
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![has_bits(0, new_user)?])?]);
    rules.insert(
        libc::SYS_ioctl,
        vec![SeccompRule::new(vec![is(1, TIOCSTI)?])?, SeccompRule::new(vec![is(1, TIOCLINUX)?])?],
    );
    rules.insert(libc::SYS_socket, sockets()?);
    Ok(rules)
}

/// Families of sockets that lead past the network of the namespace, or to drivers. Node asks `NETLINK_ROUTE` for interfaces.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let families =
        [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_BLUETOOTH, libc::AF_KEY, libc::AF_CAN];
    let mut rules = Vec::new();
    for family in families {
        let family = u64::from(family.unsigned_abs());
        rules.push(SeccompRule::new(vec![is(0, family)?])?);
    }
    // 0 is `NETLINK_ROUTE`.
    let not_route = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    rules.push(SeccompRule::new(vec![is(0, u64::from(libc::AF_NETLINK.unsigned_abs()))?, not_route])?);
    Ok(rules)
}

/// The flags of `clone3` lie in memory, where no filter sees them: the C library then takes `clone`.
fn absent() -> Rules {
    ABSENT_EVERYWHERE.into_iter().map(|call| (call, Vec::new())).collect()
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    // The kernel reads 32 bits of these arguments: with the upper half compared as well, a bit set there would pass the filter.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn has_bits(argument: u8, bits: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
}

/// Writes a program as the kernel's `struct sock_filter` lies in memory.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instructions = program.iter();
    instructions
        .flat_map(|one| {
            let [code_low, code_high] = one.code.to_ne_bytes();
            let [k0, k1, k2, k3] = one.k.to_ne_bytes();
            [code_low, code_high, one.jt, one.jf, k0, k1, k2, k3]
        })
        .collect()
}
