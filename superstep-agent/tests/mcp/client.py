"""Lists the tools of an MCP server and calls the first of them: a client that is not ours.

usage: client.py URL auto|legacy MESSAGE
"""

import asyncio
import json
import sys

from mcp import Client


async def main(url, mode, message):
    async with Client(url, mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(tools[0].name, {"message": message})
        said = [content.text for content in result.content]
        print(json.dumps({"tools": [tool.name for tool in tools], "said": said}))


asyncio.run(main(*sys.argv[1:]))
