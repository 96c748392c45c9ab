"""Asks `afterimage mcp` with the protocol's own client in Python, which checks each structured answer against the schema of its tool.

check.py PROGRAM ROOT RECORDING CALLS.json
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program, root, recording, calls):
    server = StdioServerParameters(command=program, args=["mcp", "--root", root])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            first = await session.initialize()
            version = getattr(first, "protocol_version", None) or getattr(first, "protocolVersion", None)
            print(f"initialized, protocol {version}")
            listed = await session.list_tools()
            names = [tool.name for tool in listed.tools]
            print(f"{len(names)} tools: {', '.join(names)}")
            asked = set()
            for call in calls:
                told = []

                async def progress(done, total, message):
                    told.append(done)

                arguments = {"recording": recording, **call["arguments"]}
                result = await session.call_tool(call["tool"], arguments, progress_callback=progress)
                failed = getattr(result, "is_error", None)
                failed = result.isError if failed is None else failed
                structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
                text = result.content[0].text
                assert len(text.splitlines()) <= 60, text
                assert failed == call.get("fails", False), text
                if not failed:
                    assert structured["report"] is not None, text
                    asked.add(call["tool"])
                for expected in call.get("says", []):
                    assert expected in text, f"{expected!r} is not in\n{text}"
                print(f"{call['tool']} {json.dumps(call['arguments'])}: {len(text.splitlines())} lines, {len(told)} times progress")
                assert told == sorted(told), told
            missing = set(names) - asked
            assert not missing, f"never asked with success: {missing}"
    print("the client in Python accepts every answer")


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], json.load(open(sys.argv[4]))))
