// Connects to an MCP server, pings it, and calls a tool: prints a line of JSON for each.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func show(value any, err error) {
	line := map[string]any{"value": value}
	if err != nil {
		line["error"] = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(line)
}

func main() {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "toolchat-test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: os.Args[1]}, nil)
	if err != nil {
		show(nil, err)
		os.Exit(1)
	}
	defer session.Close()
	show(session.InitializeResult().ProtocolVersion, nil)
	show(nil, session.Ping(ctx, nil))
	arguments := map[string]any{"timeZoneId": "Asia/Shanghai"}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "getCityTimeFunction", Arguments: arguments})
	if err != nil {
		show(nil, err)
		os.Exit(1)
	}
	show(result.StructuredContent, nil)
}
