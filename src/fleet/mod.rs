//! Many repositories and loops on one page: what each came to last, how its nights went, what it costs and who is waited for.

pub mod board_json;
pub mod board_page;
pub mod board_rows;
pub(crate) mod board_sources;
pub(crate) mod fetched_deliveries;
pub mod loop_deliveries;
