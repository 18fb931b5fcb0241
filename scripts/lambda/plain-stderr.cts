/** Stands in for `sonic-boom` in bundles: functions write their log to standard error line by line, and need no buffers, files or drains. */
import fs = require('node:fs');

class PlainStderr {
  on(): this {
    return this;
  }

  write(line: string): boolean {
    let rest = Buffer.from(line);
    while (rest.length > 0) rest = rest.subarray(written(rest));
    return true;
  }

  flushSync(): void {}

  end(): void {}
}

/** How many bytes standard error took; none when its reader is behind. */
function written(bytes: Buffer): number {
  try {
    return fs.writeSync(2, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}

export = PlainStderr;
