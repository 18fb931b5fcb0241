/** Every client that `npm run sdk` writes. */
import { goSdk } from './go.ts';
import { pythonSdk } from './python.ts';
import { typescriptSdk } from './typescript.ts';

export const allSdks = [typescriptSdk, pythonSdk, goSdk] as const;
