/** The version that `isthmus version` prints, the agents report and the image is tagged with. */
import manifest from '../../package.json' with { type: 'json' };

export const version: string = manifest.version;
/** What `join` installs unless `--image` says otherwise; `npm run image` builds it under this name. */
export const agentImage = `isthmus.dev/agent:${manifest.version}`;
