//! Calls tools, where this program was built with MCP.

use crate::engine::request::ToolRequest;
use crate::evaluate::observation::Observation;

use super::world::World;

/// Calls a tool and returns the envelope of its answer as the output of an action.
#[cfg(feature = "mcp")]
pub(super) async fn call(request: &ToolRequest, world: &mut World) -> Observation {
    super::mcp::call(request, world).await
}

/// Says that no tool can be called.
#[cfg(not(feature = "mcp"))]
#[expect(clippy::unused_async, reason = "the real one waits")]
pub(super) async fn call(_request: &ToolRequest, _world: &mut World) -> Observation {
    Observation::not_started("this ll-loop was built without the feature `mcp`".to_owned())
}
