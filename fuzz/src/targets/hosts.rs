//! What the CLIs of agents print, which nobody promises anything about: any lines, cut anywhere.
//!
//! The first byte names the host, the second the exit code, and the third where the stream breaks off.

use ll_loop::internals::host::{self, Terms};

use crate::bytes::Plan;
use crate::{Target, note};

/// See above.
pub const TARGET: Target = Target {
    name: "hosts",
    run,
    seeds,
    words: &[
        "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n",
        "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\\n\"}],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n",
        "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"total_cost_usd\":0.1}\n",
        "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"hi\"}}\n",
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1}}\n",
        "{\"type\":\"turn.failed\"}\n",
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"a\\nb\",\"delta\":true}\n",
        "{\"type\":\"result\",\"status\":\"success\",\"stats\":{}}\n",
        "{\"id\":0,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}}\n",
        "{\"id\":1,\"result\":{\"sessionId\":\"s\",\"modes\":{\"currentModeId\":\"a\",\"availableModes\":[]}}}\n",
        "{\"id\":2,\"result\":{\"stopReason\":\"end_turn\"}}\n",
        "{\"id\":0,\"method\":\"session/request_permission\",\"params\":{\"toolCall\":{},\"options\":[]}}\n",
        "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}}}\n",
        "\"permission_denials\":[{\"tool_name\":\"Bash\"}]",
        "\"structured_output\":{\"a\":1}",
        "\"usage\":",
        "\"input_tokens\":",
        "\"output_tokens\":",
        "\"total_tokens\":",
        "\"cache_read_input_tokens\":18446744073709551615",
        "18446744073709551615",
        "9223372036854775807",
        "-1",
        "1e400",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\\u0000",
        "\\ud83d",
        "\u{1b}[31m",
        "\r",
        "\n",
        "\n\n",
        "\u{2028}",
    ],
};

/// Good streams of each host.
const STREAMS: &[(u8, &str)] = &[
    (
        0,
        r#"{"type":"system","subtype":"init","session_id":"s1","model":"asked"}
{"type":"assistant","message":{"content":[{"type":"text","text":"one\ntwo"},{"type":"tool_use","name":"Bash"}],"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":3}}}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}
{"type":"result","subtype":"success","is_error":false,"result":"{\"verdict\": \"yes\"}","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":7},"modelUsage":{"answered":{}},"permission_denials":[]}
"#,
    ),
    (
        0,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"result":"no","api_error_status":529}"#,
    ),
    (
        1,
        r#"{"type":"thread.started","thread_id":"t1"}
{"type":"item.completed","item":{"type":"agent_message","text":"one\ntwo"}}
{"type":"item.completed","item":{"type":"command_execution","command":"ls","status":"declined"}}
{"type":"error","message":"reconnecting"}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":7}}
"#,
    ),
    (
        2,
        r#"{"type":"init","session_id":"s1","model":"m"}
{"type":"message","role":"assistant","content":"one\ntw","delta":true}
{"type":"message","role":"assistant","content":"o","delta":true}
{"type":"error","severity":"warning","message":"slow"}
{"type":"result","status":"success","stats":{"total_tokens":30,"input_tokens":10,"output_tokens":7}}
"#,
    ),
    (
        3,
        r#"{"type":"system","session_id":"s1","model":"m"}
{"type":"assistant","message":{"content":[{"type":"text","text":"{\"a\": 1}"}],"usage":{"input_tokens":5,"output_tokens":3}}}
{"type":"result","subtype":"success","is_error":false,"result":"{\"a\": 1}","usage":{"input_tokens":10,"output_tokens":7}}
"#,
    ),
    (
        4,
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"authMethods":[{"id":"k","name":"K"}]}}
{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1","modes":{"currentModeId":"auto","availableModes":[{"id":"default","name":"Default"}]}}}
{"jsonrpc":"2.0","id":2,"result":{}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"one\ntwo"}}}}
{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t","title":"ls","kind":"execute"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":9,"size":99,"cost":{"amount":0.1,"currency":"USD"}}}}
{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"totalTokens":9,"inputTokens":5,"outputTokens":4}}}
"#,
    ),
];

fn seeds() -> Vec<Vec<u8>> {
    let all = STREAMS.iter().map(|(host, text)| [&[*host, 0, 255], text.as_bytes()].concat());
    let long = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"text\":\"{}\"}}]}}}}\n",
        "ä\\n".repeat(300)
    );
    let failed = [&[0, 1, 255], "not logged in\nplease log in\n".as_bytes()].concat();
    all.chain([[&[0, 0, 255], long.as_bytes()].concat(), failed]).collect()
}

fn run(data: &[u8]) {
    let mut plan = Plan::new(data);
    let names: Vec<&str> = host::names().chain(["acp:player"]).collect();
    let name = names[usize::from(plan.byte()) % names.len()];
    let host = host::by_name(name).expect("a host has a name");
    // An agent that is talked to has ended well when it has answered, however its process ends.
    let talks = host.talks().is_some();
    let exit_code = [0, 1, 41, 44, 52, 130, 137, -1][usize::from(plan.byte()) % 8];
    let cut = usize::from(plan.byte());
    let whole = plan.text();
    // The stream breaks off there, unless it does not.
    let text =
        if cut == 255 { &whole[..] } else { &whole[..whole.floor_char_boundary(whole.len() * cut / 255)] };
    let mut listener = host.listen(&Terms::default());
    for line in text.lines() {
        let was_done = listener.is_done();
        let mut count = 0;
        listener.line(line, &mut |said| {
            let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
            assert!(!said.contains(odd), "what is shown is plain: {said:?}");
            count += 1;
        });
        assert!(!was_done || listener.is_done(), "what is done stays done");
        let tokens = listener.usage().tokens();
        note((name, listener.is_done(), tokens > 0, listener.said().len().min(64) / 16, count.min(3)));
    }
    if let Some(cost) = listener.usage().cost_usd {
        assert!(cost >= 0.0, "a price is no less than nothing: {cost}");
    }
    let ended = match plan.rest().len() % 2 {
        0 => listener.end(exit_code),
        _ => listener.answer(exit_code),
    };
    // An answer that was complete when the budget was spent counts, whatever the code.
    let is_good = exit_code == 0 || talks || text.contains("error_max_budget_usd");
    if let Ok(said) = &ended {
        assert!(is_good && (said.ends_with('\n') || !said.trim().is_empty()), "{said:?}");
    }
    note((name, ended.as_ref().map(|_| ()).map_err(std::mem::discriminant)));
    let (answer, usage) = host.answer(text, exit_code);
    assert!(usage.calls == 1 || talks && usage.calls == 0);
    if let Ok(answer) = &answer {
        assert!(answer.is_object() && is_good, "{answer}");
    }
    note((name, "answer", answer.map(drop).map_err(|failure| std::mem::discriminant(&failure))));
}
