import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import software.amazon.event.ruler.Ruler;

/** Per line of input {"event": …, "pattern": …}, a line "true", "false" or "refused: why". */
public class Matcher {
  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      Map<?, ?> asked = mapper.readValue(line, Map.class);
      String answer;
      try {
        answer = String.valueOf(Ruler.matchesRule(
            mapper.writeValueAsString(asked.get("event")), mapper.writeValueAsString(asked.get("pattern"))));
      } catch (Exception error) {
        answer = "refused: " + error.getMessage().replace('\n', ' ');
      }
      System.out.println(answer);
      System.out.flush();
    }
  }
}
