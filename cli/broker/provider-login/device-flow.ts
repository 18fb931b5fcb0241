/** The device flow (RFC 8628): shows where to consent, then asks the provider until there is a token, a refusal, or the code has expired. */
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { decide, defaultIntervalSeconds, type Tokens } from './decide.ts';
import { type DeviceCode, findProvider, type Provider } from './provider.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';

export async function deviceFlow(io: CliIo, issuer: string, clientId: string): Promise<Tokens> {
  const provider = await findProvider(io, issuer, clientId);
  const code = await provider.askForCode();
  const page = code.verification_uri ?? code.verification_url;
  if (page === undefined) {
    throw new AppError('issuer_unreachable', `${issuer} answered without the page to open (verification_uri)`);
  }
  io.stderr.write(
    `To log in, open this page, in any browser on any machine, and check that it shows the code ${code.user_code}:\n\n  ${code.verification_uri_complete ?? page}\n\n`,
  );
  if (code.verification_uri_complete !== undefined) io.stderr.write(`Or open ${page} and type the code.\n`);
  const minutes = Math.max(1, Math.round(code.expires_in / 60));
  return during(createProgress(io), `consent at ${issuer}, for at most ${minutes} min`, (step) =>
    awaitConsent(io, provider, code, (news) => step.update(news)),
  );
}

async function awaitConsent(
  io: CliIo,
  provider: Provider,
  code: DeviceCode,
  say: (news: string) => void,
): Promise<Tokens> {
  const deadline = io.clock.now() + code.expires_in * 1_000;
  let pause = (code.interval ?? defaultIntervalSeconds) * 1_000;
  for (;;) {
    const left = deadline - io.clock.now();
    if (left <= 0) throw expired();
    await io.clock.sleep(Math.min(pause, left), io.signal);
    const answer = await provider.tokens({ grant_type: grantType, device_code: code.device_code });
    say(answer.kind === 'silence' ? `the provider does not answer: ${answer.why}` : '');
    const next = decide(answer, pause);
    if (next.do === 'take') return next.tokens;
    if (next.do === 'give up') {
      if (next.because === 'expired') throw expired();
      throw next.because === 'denied' ? denied(next.message) : refused(next.message);
    }
    pause = next.afterMs;
  }
}

const expired = (): AppError =>
  new AppError('deadline_exceeded', 'the code expired before consent was given at the provider', {
    detail: { remedy: 'run `isthmus login` again and open the page that it names' },
  });

const denied = (why: string): AppError =>
  new AppError('unauthenticated', `consent was denied at the provider: ${why}`, {
    detail: { remedy: 'run `isthmus login` again and consent, or log in with --key' },
  });

const refused = (why: string): AppError =>
  new AppError('unauthenticated', `the provider gives this client no token: ${why}`, {
    detail: {
      remedy: 'enable the device authorization grant for the client at the provider, or log in with --key',
    },
  });
