/** The consumer's side of `GET /certificate`: asks the provider's proxy, through the link, for the certificate that it holds ready. */
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { certificatePath } from '#agent/model/proxy-paths.ts';
import { challengeOf, type ProxyToken } from '#kube/http/tls.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
}

const answerMs = 3_000;
/** Of a certificate in PEM, many times over. */
const mostBytes = 16_384;

/** The proxy's answer is untrusted text: callers check that it is a certificate for the own key. Fails with `kube_unreachable`. */
export async function askForCertificate(place: ProxyAddress, token: ProxyToken, signal: AbortSignal): Promise<string> {
  const until = abortsWith(signal, AbortSignal.timeout(answerMs));
  const where = `the proxy ${place.host}:${place.port} of the provider`;
  try {
    const first = await get(place, undefined, until);
    const nonce = challengeOf(first);
    first.destroy();
    if (nonce === undefined) throw refused(where, first);
    const answer = await get(place, await token(nonce), until);
    if (answer.statusCode !== 200) {
      answer.destroy();
      throw refused(where, answer);
    }
    return await text(limited(answer, mostBytes));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError) throw error;
    const why = until.aborted
      ? `did not answer within ${answerMs / 1000} s`
      : `does not answer: ${(error as Error).message}`;
    throw new AppError('kube_unreachable', `${where} ${why}`, { cause: error });
  }
}

const refused = (where: string, { statusCode }: IncomingMessage): AppError =>
  new AppError('kube_unreachable', `${where} answered ${statusCode} to GET ${certificatePath}`);

function get({ host, port }: ProxyAddress, token: string | undefined, signal: AbortSignal): Promise<IncomingMessage> {
  const headers = token === undefined ? {} : { 'proxy-authorization': `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, path: certificatePath, headers, agent: false, signal });
    asked.once('response', resolve).on('error', reject).end();
  });
}

async function* limited(answer: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of answer) {
    bytes += piece.length;
    if (bytes > most) throw new Error(`its answer is longer than ${most} bytes`);
    yield piece;
  }
}
