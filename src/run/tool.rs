//! Calls MCP tools.

use crate::engine::request::ToolRequest;
use crate::evaluate::observation::Observation;

use super::World;

/// Calls a tool and returns its answer as the output of an action.
#[expect(clippy::unused_async, reason = "calls wait for a server")]
pub(super) async fn call(request: &ToolRequest, _world: &mut World) -> Observation {
    Observation::not_started(format!(
        "cannot call `{}/{}`: this version has no MCP client",
        request.server, request.tool
    ))
}
