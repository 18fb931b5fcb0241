/** Asks the broker where this command is logged in at one, for commands that can do without: no answer is an answer. */
import type { CliIo } from '#cli/output/io.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { type BrokerClient, createBrokerClient } from './broker-client.ts';
import { type Login, loadLogin } from './login-config.ts';

/** `failure` is set when the broker did not answer within the time, or refused. */
export type Asked<T> =
  | { readonly url: string; readonly failure: string }
  | { readonly url: string; readonly failure?: never; readonly value: T };

/** Undefined: not logged in. */
export async function loginIfAny(io: CliIo): Promise<Login | undefined> {
  try {
    return await loadLogin(io);
  } catch (error) {
    if (codeOf(error) === 'unauthenticated') return undefined;
    throw error;
  }
}

export async function askBroker<T>(
  io: CliIo,
  login: Login,
  withinMs: number,
  work: (broker: BrokerClient) => Promise<T>,
): Promise<Asked<T>> {
  const { url } = login;
  const broker = createBrokerClient({ ...io, signal: abortsWith(io.signal, AbortSignal.timeout(withinMs)) }, login);
  try {
    return { url, value: await work(broker) };
  } catch (error) {
    io.signal.throwIfAborted();
    return { url, failure: messageOf(error) };
  } finally {
    broker.close();
  }
}
