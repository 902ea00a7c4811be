//! Runs beside each other, on one machine and on several.

#[cfg(target_os = "linux")]
mod leases;
mod locks;
