//! The warden: ll-loop once more, inside. It starts the action when the gate says so, is this end of what leads out, and
//! passes on that the action has to end. It has no more rights than the action.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

use super::forward::carry;
use super::order::{self, WardenOrder, WardenSaid};
use super::own_limits;
use super::plan::PROXY_PORT;
use crate::process::{orphans, private};

/// Starts the action and waits for it; returns its exit code.
///
/// # Errors
/// The gate is not there.
pub fn warden(doors: &Path) -> io::Result<u8> {
    // The action is of the same user, and the threads behind the doors are freer than it is: whoever could write to the
    // memory of this process would work in them.
    private::keep()?;
    let mut control = UnixStream::connect(doors.join(order::CONTROL))?;
    let mut told = BufReader::new(control.try_clone()?);
    let mut line = String::new();
    told.read_line(&mut line)?;
    let mut order: WardenOrder = serde_json::from_str(&line)?;
    let is_shared = order.landlock.is_some();
    let proxy = open_doors(doors, is_shared)?;
    if let Some(mut rules) = order.landlock.take() {
        // Whoever loses its parent comes here, and ends with the action.
        orphans::adopt()?;
        if let Some(port) = proxy {
            tell_proxy(&mut order.env, port);
            rules.connect.iter_mut().for_each(|ports| ports.push(port));
        }
        own_limits::keep_to(&rules)?;
    }
    if order.has_filters {
        // Threads that were there before keep what they may: they are ours.
        own_limits::filter_calls()?;
    }
    let (program, arguments) = order.action.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let text = |bytes: Vec<u8>| OsString::from_vec(bytes);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(order.env.into_iter().map(|(name, value)| (text(name), text(value))))
        .current_dir(&order.cwd)
        // A signal to this group reaches what the action started, and not the warden.
        .process_group(0);
    let mut action = match command.spawn() {
        Ok(action) => action,
        Err(error) => {
            let why = if error.kind() == io::ErrorKind::NotFound {
                format!("cannot start `{program}`: no such program on PATH")
            } else {
                format!("cannot start `{program}`: {error}")
            };
            say(&mut control, &WardenSaid::NotStarted(why))?;
            return Ok(127);
        }
    };
    say(&mut control, &WardenSaid::Running)?;
    let group = Pid::from_child(&action);
    thread::spawn(move || pass_on(told, group));
    let status = ended(&mut action)?;
    if is_shared {
        // With a namespace of processes of its own, the kernel ends what is left together with it.
        orphans::end_all();
    }
    if let Some(number) = status.signal() {
        say(&mut control, &WardenSaid::Signalled(number))?;
    }
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Tells programs of a proxy that listens at another port than usual.
fn tell_proxy(env: &mut [(Vec<u8>, Vec<u8>)], port: u16) {
    let usual = order::proxy_address(PROXY_PORT);
    for (_, value) in env {
        if *value == usual.as_bytes() {
            *value = order::proxy_address(port).into_bytes();
        }
    }
}

/// Waits for the action. Where whoever lost its parent comes here, they are buried as well.
fn ended(action: &mut Child) -> io::Result<ExitStatus> {
    let id = Pid::from_child(action);
    loop {
        match wait(WaitOptions::empty())? {
            Some((ended, status)) if ended == id => return Ok(ExitStatus::from_raw(status.as_raw())),
            Some(_) | None => {}
        }
    }
}

fn say(control: &mut UnixStream, said: &WardenSaid) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    control.write_all(&line)
}

/// Passes on what the gate is asked. Without a gate, the action ends at once.
fn pass_on(told: BufReader<UnixStream>, group: Pid) {
    for line in told.lines() {
        let number = line.ok().and_then(|line| line.parse().ok());
        let Some(signal) = number.and_then(Signal::from_named_raw) else { break };
        let _gone = kill_process_group(group, signal);
    }
    let _gone = kill_process_group(group, Signal::KILL);
}

/// Listens where programs look for what is outside, and returns the port of the proxy. On the loopback of the machine, it is
/// any that is free, and ports of the machine are reached as they are.
fn open_doors(doors: &Path, is_shared: bool) -> io::Result<Option<u16>> {
    let mut proxy = None;
    for entry in fs_err::read_dir(doors)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_proxy = name == order::PROXY;
        let port = match name.strip_prefix("port-") {
            Some(port) => port.parse().ok().filter(|_| !is_shared),
            None => is_proxy.then_some(if is_shared { 0 } else { PROXY_PORT }),
        };
        let Some(port) = port else { continue };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        if is_proxy {
            proxy = Some(listener.local_addr()?.port());
        }
        let door = doors.join(name);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let door = door.clone();
                thread::spawn(move || {
                    drop(UnixStream::connect(door).and_then(|server| carry(client, server)));
                });
            }
        });
    }
    Ok(proxy)
}
