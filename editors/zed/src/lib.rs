//! Starts `afterimage dap` for Zed.

use zed_extension_api::{
    self as zed, DebugAdapterBinary, DebugConfig, DebugRequest, DebugScenario, DebugTaskDefinition,
    StartDebuggingRequestArguments, StartDebuggingRequestArgumentsRequest, Worktree, serde_json,
};

struct Afterimage;

impl zed::Extension for Afterimage {
    fn new() -> Self {
        Self
    }

    fn get_dap_binary(
        &mut self,
        _adapter: String,
        task: DebugTaskDefinition,
        user_path: Option<String>,
        worktree: &Worktree,
    ) -> Result<DebugAdapterBinary, String> {
        let command = user_path.or_else(|| worktree.which("afterimage"));
        let command = command.ok_or("afterimage is not on the PATH")?;
        let config: serde_json::Value =
            serde_json::from_str(&task.config).map_err(|error| error.to_string())?;
        let request = self.dap_request_kind(_adapter, config)?;
        Ok(DebugAdapterBinary {
            command: Some(command),
            arguments: vec!["dap".to_owned()],
            envs: worktree.shell_env(),
            cwd: Some(worktree.root_path()),
            connection: None,
            request_args: StartDebuggingRequestArguments {
                configuration: task.config,
                request,
            },
        })
    }

    fn dap_request_kind(
        &mut self,
        _adapter: String,
        config: serde_json::Value,
    ) -> Result<StartDebuggingRequestArgumentsRequest, String> {
        match config.get("request").and_then(serde_json::Value::as_str) {
            Some("launch") => Ok(StartDebuggingRequestArgumentsRequest::Launch),
            Some("attach") => Ok(StartDebuggingRequestArgumentsRequest::Attach),
            _ => Err("set \"request\" to \"launch\" or \"attach\"".to_owned()),
        }
    }

    fn dap_config_to_scenario(&mut self, config: DebugConfig) -> Result<DebugScenario, String> {
        let DebugRequest::Launch(launch) = config.request else {
            return Err("name a recording with \"attach\" in debug.json".to_owned());
        };
        let settings = serde_json::json!({
            "request": "launch",
            "program": launch.program,
            "args": launch.args,
            "cwd": launch.cwd,
            "stopOnEntry": config.stop_on_entry.unwrap_or(false),
        });
        Ok(DebugScenario {
            label: config.label,
            adapter: config.adapter,
            build: None,
            config: settings.to_string(),
            tcp_connection: None,
        })
    }
}

zed::register_extension!(Afterimage);
