//! Calls MCP tools: the server is started for the call, asked once, and ended with everything that it started.

use std::cell::RefCell;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ErrorCode, Implementation};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::complaints::Complaints;
use super::mcp_servers::{self, ServerProblem};
use super::sandbox_setup::Confinable;
use super::ticking::tick;
use super::world::World;
use crate::base::text::one_line;
use crate::engine::request::ToolRequest;
use crate::evaluate::observation::{NOT_FOUND_CODE, Observation, Stop, TIMEOUT_CODE, Text};
use crate::process::clock::Clock;
use crate::process::running_child::RunningService;
use crate::process::signal::EndRequest;
use crate::process::spawn::Program;

/// A server that prints more than this in one call is broken.
const MOST_OUTPUT: u64 = 64 * 1024 * 1024;

/// What a call came to.
enum ToolEnd {
    /// The tool answered; true when it says that it failed.
    Answer(Value, bool),
    /// There is no such tool.
    NoTool(String),
    /// The server broke the call off, or broke down.
    Broken(String),
    /// The time was over.
    Late(Stop),
    /// Somebody wants the run to end.
    Cancelled,
}

/// Calls a tool and returns the envelope of its answer as the output of an action.
pub(super) async fn call(request: &ToolRequest, world: &mut World) -> Observation {
    let cancelled = || Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") };
    if world.cancel.is_asked() {
        return cancelled();
    }
    let clock = Clock::start();
    let program = match program(request, world) {
        Ok(program) => program,
        Err(ServerProblem::Absent(why)) => return Observation::exited(NOT_FOUND_CODE, failed(&why)),
        Err(ServerProblem::Unusable(why)) => return Observation::not_started(why),
    };
    let (program, confined) = match world.confine(program, &request.setting, Confinable::Command(Vec::new()))
    {
        Ok(confined) => confined,
        Err(seen) => return *seen,
    };
    let mut service = match RunningService::start(&program) {
        Ok(service) => service,
        Err(why) => return Observation::not_started(format!("the server `{}`: {why}", request.server)),
    };
    let mut complaints = Complaints::new();
    let called = attended(request, &mut service, &mut complaints, world).await;
    let called = match called {
        // How it ended says more than that the line is dead.
        ToolEnd::Broken(why) => ToolEnd::Broken(explained(why, &mut service).await),
        ToolEnd::Answer(..) | ToolEnd::NoTool(_) | ToolEnd::Late(_) | ToolEnd::Cancelled => called,
    };
    service.end(&mut world.cancel).await;
    let seen = match called {
        ToolEnd::Answer(envelope, is_error) => {
            Observation::exited(i32::from(is_error), format!("{envelope}\n"))
        }
        ToolEnd::NoTool(why) => Observation::exited(NOT_FOUND_CODE, failed(&why)),
        ToolEnd::Broken(why) => Observation::exited(1, failed(&why)),
        ToolEnd::Late(stop) => Observation { stop: Some(stop), ..Observation::exited(TIMEOUT_CODE, "") },
        ToolEnd::Cancelled => cancelled(),
    };
    let seen = Observation { stderr: Text::whole(complaints.kept()), duration: clock.elapsed(), ..seen };
    world.release(confined, seen)
}

/// Adds how a server ended that broke a call off, if it did.
async fn explained(why: String, service: &mut RunningService) -> String {
    // The line is dead before the process is; half a second tells how it ended.
    match tokio::time::timeout(Duration::from_millis(500), service.ended()).await {
        Ok(Some(status)) => format!("{why}; the server ended ({status})"),
        Ok(None) | Err(_) => why,
    }
}

/// The envelope of a call that came to nothing.
fn failed(why: &str) -> String {
    format!("{}\n", json!({"isError": true, "content": [{"type": "text", "text": why}]}))
}

fn program(request: &ToolRequest, world: &World) -> Result<Program, ServerProblem> {
    let mut env = world.env_of(&request.setting);
    let server = mcp_servers::find(&world.root, &request.server, &env)?;
    env.extend(server.env);
    world.program(server.argv, env, &request.setting).map_err(|why| ServerProblem::Unusable(why.to_string()))
}

/// Talks to the server until there is an answer or a reason not to wait for one.
async fn attended(
    request: &ToolRequest,
    service: &mut RunningService,
    complaints: &mut Complaints,
    world: &mut World,
) -> ToolEnd {
    let (Some(stdin), Some(stdout), Some(mut stderr)) =
        (service.stdin.take(), service.stdout.take(), service.stderr.take())
    else {
        return ToolEnd::Broken("its pipes are not there".to_owned());
    };
    let started = Instant::now();
    let end = request.setting.end.map(|(limit, stop)| (started + limit, stop));
    let sinks = RefCell::new(&mut world.sinks);
    let talk = talk(request, stdin, stdout);
    tokio::pin!(talk);
    // Once it is closed, it is not asked again: it would be ready at once, for ever.
    let mut is_silent = false;
    loop {
        // The complaints are a sign of life, as the answer comes in one piece.
        let idle = request.setting.idle.map(|limit| (complaints.last + limit, Stop::IdleTimeout));
        let wake = end.into_iter().chain(idle).min_by_key(|(at, _)| *at);
        tokio::select! {
            called = &mut talk => {
                complaints.finish(&world.redactor, &sinks);
                return called;
            }
            is_open = complaints.read(&mut stderr, &world.redactor, &sinks), if !is_silent => is_silent = !is_open,
            () = sleep_until(wake.map_or(started, |(at, _)| at)), if wake.is_some() => {
                return ToolEnd::Late(wake.map_or(Stop::Timeout, |(_, stop)| stop));
            }
            _ = world.cancel.differs_from(EndRequest::None) => return ToolEnd::Cancelled,
            never = tick(&sinks) => match never {},
        }
    }
}

/// The conversation: introduction, the list of tools, the call.
async fn talk(request: &ToolRequest, stdin: ChildStdin, stdout: ChildStdout) -> ToolEnd {
    let us = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let client = rmcp::model::ClientConfig::new(rmcp::model::ClientCapabilities::default(), us);
    let client = match client.serve((BufReader::new(stdout.take(MOST_OUTPUT)), stdin)).await {
        Ok(client) => client,
        Err(error) => {
            return ToolEnd::Broken(format!(
                "no conversation with the server: {}",
                one_line(&error.to_string(), 300)
            ));
        }
    };
    // A server that does not list its tools may have this one all the same.
    if let Ok(tools) = client.list_all_tools().await
        && !tools.iter().any(|tool| tool.name == request.tool)
    {
        let near =
            crate::base::diagnostic::nearest(&request.tool, tools.iter().map(|tool| tool.name.as_ref()));
        let help = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return ToolEnd::NoTool(format!(
            "the server `{}` has no tool `{}`{help}",
            request.server, request.tool
        ));
    }
    // The arguments are checked by the server, who knows their schema.
    let params = CallToolRequestParams::new(request.tool.clone()).with_arguments(request.params.clone());
    let answer = client.call_tool(params).await;
    // The transport goes with the client; a server that takes its time to end is the business of who started it.
    drop(client);
    match answer {
        Ok(result) => {
            let is_error = result.is_error.unwrap_or(false);
            match serde_json::to_value(&result) {
                Ok(mut envelope) => {
                    // Written also where it is false, so that expressions can rely on it.
                    envelope["isError"] = is_error.into();
                    ToolEnd::Answer(envelope, is_error)
                }
                Err(error) => ToolEnd::Broken(error.to_string()),
            }
        }
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            ToolEnd::NoTool(error.message.into_owned())
        }
        Err(error) => ToolEnd::Broken(one_line(&error.to_string(), 1000)),
    }
}
