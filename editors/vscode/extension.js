// Starts `afterimage dap`, and adds what the protocol has no request for: stepping in and out backward, and origins.
const vscode = require("vscode");

function activate(context) {
  const factory = {
    createDebugAdapterDescriptor() {
      const path = vscode.workspace.getConfiguration("afterimage").get("path");
      return new vscode.DebugAdapterExecutable(path, ["dap"]);
    },
  };
  const step = (request) => async () => {
    const session = vscode.debug.activeDebugSession;
    if (session && session.type === "afterimage") {
      await session.customRequest(request, { threadId: 1 });
    }
  };
  const origins = async (chosen) => {
    const session = vscode.debug.activeDebugSession;
    const variable = chosen && chosen.variable;
    const expression = variable && (variable.evaluateName || variable.name);
    if (!session || !expression) {
      return;
    }
    const item = vscode.debug.activeStackItem;
    const frameId = item && item.session === session ? item.frameId : undefined;
    const arguments_ = { expression: `why ${expression}`, context: "repl", frameId };
    const answer = await session.customRequest("evaluate", arguments_);
    vscode.debug.activeDebugConsole.appendLine(answer.result);
    await vscode.commands.executeCommand("workbench.debug.action.focusRepl");
  };
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("afterimage", factory),
    vscode.commands.registerCommand("afterimage.reverseStepIn", step("afterimage/reverseStepIn")),
    vscode.commands.registerCommand("afterimage.reverseStepOut", step("afterimage/reverseStepOut")),
    vscode.commands.registerCommand("afterimage.origins", origins),
  );
}

module.exports = { activate };
