/** The secret box port: encrypts the few secrets that must be read again. The key is not in the store. */
export interface SecretBox {
  /** Text for the store. It opens for the same `context` only: moved to another record, it is worthless. */
  seal(secret: string, context: string, signal?: AbortSignal): Promise<string>;
  /** Throws when it was sealed with another key or for another context, or was changed. */
  open(sealed: string, context: string, signal?: AbortSignal): Promise<string>;
}
