//! An MCP server for the tests, written with the official SDK: each of its tools does something else.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a server complains, and one of its tools crashes"
)]

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};

struct Tools;

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = ["echo", "fail", "refuse", "slow", "crash", "noise"];
        let tools = names.map(|name| Tool::new(name, name, Arc::default())).to_vec();
        Ok(ListToolsResult { tools, ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = |text: String| vec![ContentBlock::text(text)];
        Ok(match request.name.as_ref() {
            "echo" => {
                let arguments = serde_json::to_string(&request.arguments).unwrap_or_default();
                CallToolResult::success(text(arguments))
            }
            "fail" => CallToolResult::error(text("it broke".to_owned())),
            "slow" => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                CallToolResult::success(text("late".to_owned()))
            }
            "noise" => {
                eprintln!("a complaint");
                CallToolResult::success(text("fine".to_owned()))
            }
            "crash" => std::process::exit(3),
            _ => return Err(ErrorData::internal_error("refused", None)),
        }
        .into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write("server.pid", std::process::id().to_string())?;
    Tools.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
