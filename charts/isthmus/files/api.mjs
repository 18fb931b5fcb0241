/** The API server as the pod of a hook reaches it, with the token of its account. */
import { readFileSync } from 'node:fs';

const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, TOKEN_FILE: tokenFile } = process.env;
const origin = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
const authorization = `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;

/**
 * How long an answer that passes by itself is asked for again: an API server hears of the role of this account a moment after it was written, and
 * answers 429 to the first list of a new kind until its watch cache is filled.
 */
const passesWithinMs = 15_000;

/** `body` is the answer's object; where the answer is none, a Status with its text. Rejects when nothing answers within 30 s. */
export async function ask(path, request) {
  const deadline = Date.now() + passesWithinMs;
  for (;;) {
    const answer = await send(path, request);
    const lacksRole = answer.status === 403 && / cannot \w+ resource /.test(answer.body.message);
    const isBusy = answer.status === 429 || answer.status === 503;
    if (!(lacksRole || isBusy) || Date.now() > deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function send(path, { method = 'GET', type = 'application/json', accept = 'application/json', object } = {}) {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { authorization, accept, ...(object && { 'content-type': type }) },
    ...(object && { body: JSON.stringify(object) }),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  try {
    return { status: response.status, body: JSON.parse(text) };
  } catch {
    return { status: response.status, body: { message: text } };
  }
}

/** Asks every second until `look` gives nothing to wait for, at most `seconds` long. Returns what was missing at last. */
export async function until(seconds, look) {
  const deadline = Date.now() + seconds * 1_000;
  for (;;) {
    const missing = await look().catch(
      (error) => `the API server does not answer: ${error.cause?.message ?? error.message}`,
    );
    if (missing === undefined || Date.now() > deadline) return missing;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}
