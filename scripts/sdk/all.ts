/** Every client that `npm run sdk` writes. */
import { pythonSdk } from './python.ts';
import { typescriptSdk } from './typescript.ts';

export const allSdks = [typescriptSdk, pythonSdk] as const;
