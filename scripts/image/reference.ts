/** Names of images in registries. */
import { AppError } from '#shared/errors/app-error.ts';

export interface Reference {
  /** HOST or HOST:PORT. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

const pattern =
  /^(?<registry>[a-zA-Z0-9.-]+(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?)\/(?<repository>[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*):(?<tag>\w[\w.-]{0,127})$/;

/** No registry and no tag is assumed: what is pushed, and where, is written out. */
export function parseReference(text: string): Reference {
  const { registry = '', repository = '', tag = '' } = pattern.exec(text)?.groups ?? {};
  const names = registry === 'localhost' || /[.:]/.test(registry);
  if (!names) {
    throw new AppError(
      'invalid_input',
      `--push is ${JSON.stringify(text)}; accepted: HOST[:PORT]/REPOSITORY:TAG with the registry's host, for example registry.example:5000/isthmus/agent:0.1.0`,
      { detail: { field: 'push', value: text } },
    );
  }
  return { registry, repository, tag };
}
