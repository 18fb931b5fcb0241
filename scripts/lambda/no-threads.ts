/** Stands in for `thread-stream` in bundles: pino needs it only for transports in threads of their own, which functions do not have. */
export default class NoThreads {
  constructor() {
    throw new Error('functions write their log themselves');
  }
}
