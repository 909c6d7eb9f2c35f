package bench;

import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.advisor.MessageChatMemoryAdvisor;
import org.springframework.ai.chat.memory.ChatMemory;
import org.springframework.ai.chat.memory.MessageWindowChatMemory;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

/** Spring AI's quickstart: one chat client, one tool, and its answer as a text or as server-sent events. */
@SpringBootApplication
@RestController
public class Peer {
    private static final String PATH = "/time/chat-tool-function";
    private static final int WINDOW = 40;
    private final ChatClient client;
    private final ChatClient remembering;

    Peer(ChatClient.Builder builder) {
        client = builder.defaultSystem("Answer in the language of the question.").defaultTools(new TimeTools()).build();
        ChatMemory window = MessageWindowChatMemory.builder().maxMessages(WINDOW).build();
        remembering = client.mutate().defaultAdvisors(MessageChatMemoryAdvisor.builder(window).build()).build();
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Peer.class, arguments);
    }

    @GetMapping(path = PATH, produces = MediaType.TEXT_PLAIN_VALUE)
    String answer(@RequestParam String query) {
        return client.prompt().user(query).call().content();
    }

    @GetMapping(path = PATH, produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    Flux<String> stream(@RequestParam String query) {
        return client.prompt().user(query).stream().content();
    }

    @GetMapping(path = "/session/chat-tool-function", produces = MediaType.TEXT_PLAIN_VALUE)
    String remembered(@RequestParam String query) {
        return remembering.prompt().user(query).advisors(it -> it.param(ChatMemory.CONVERSATION_ID, "one")).call().content();
    }

    /** The tool that every peer has. */
    static class TimeTools {
        private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss z");

        @Tool(name = "get_time", description = "Get the time of a specified city.")
        String getTime(@ToolParam(description = "Time zone id of the city, as Continent/City") String timeZoneId) {
            String now = FORMAT.format(ZonedDateTime.now(ZoneId.of(timeZoneId)));
            return "The current time zone is %s and the current time is %s".formatted(timeZoneId, now);
        }
    }
}
