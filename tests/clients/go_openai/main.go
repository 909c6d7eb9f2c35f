// Asks /v1/responses whole and streamed by the official client: prints a line of JSON for each answer.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func show(value any) { json.NewEncoder(os.Stdout).Encode(value) }

func main() {
	client := openai.NewClient(option.WithBaseURL(os.Args[1]), option.WithAPIKey("unused"), option.WithMaxRetries(0))
	question := responses.ResponseNewParams{
		Model: "toolchat",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("What time is it?")},
	}
	answer, err := client.Responses.New(context.Background(), question)
	if err != nil {
		panic(err)
	}
	kinds := []string{}
	for _, item := range answer.Output {
		kinds = append(kinds, item.Type)
	}
	show(map[string]any{"kinds": kinds, "text": answer.OutputText(), "tokens": answer.Usage.TotalTokens})
	question.PreviousResponseID = openai.String(answer.ID)
	stream := client.Responses.NewStreaming(context.Background(), question)
	text, last := "", ""
	for stream.Next() {
		event := stream.Current()
		last = event.Type
		if event.Type == "response.output_text.delta" {
			text += event.Delta
		}
	}
	if stream.Err() != nil {
		panic(stream.Err())
	}
	show(map[string]any{"text": text, "last": last})
	question.Model = "gpt-4o"
	_, err = client.Responses.New(context.Background(), question)
	show(map[string]any{"code": err.(*openai.Error).Code, "status": err.(*openai.Error).StatusCode})
}
