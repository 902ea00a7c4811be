//! What a file system can hold: some have neither modes nor links, and git is right not to look for them there.

use std::path::Path;

/// File systems that make up the modes of their files, by their magic numbers (linux/magic.h, fs/ntfs3, fs/exfat,
/// fs/smb): FAT, exFAT, NTFS, 9p (shared directories of virtual machines), CIFS, SMB2 and FUSE, of which most are one
/// of these.
#[cfg(target_os = "linux")]
const WITHOUT_MODES: [u32; 8] =
    [0x4d44, 0x2011_bab0, 0x5346_544e, 0x7366_746e, 0x0102_1997, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546];

/// Tells whether files there have modes of their own, and links are links. A configuration that says otherwise then hides
/// changes.
#[cfg(target_os = "linux")]
pub(crate) fn holds_modes(directory: &Path) -> bool {
    // The width of the field differs between processors; the numbers have 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    rustix::fs::statfs(directory).is_ok_and(|found| !WITHOUT_MODES.contains(&(found.f_type as u32)))
}

/// Tells whether files there have modes of their own, and links are links: those of this system do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn holds_modes(_directory: &Path) -> bool {
    true
}
