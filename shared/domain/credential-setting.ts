/** What a cluster gives to its consumers, as its administrator says it at the installation. */
export const credentialSettings = ['auto', 'certificate', 'token'] as const;
export type CredentialSetting = (typeof credentialSettings)[number];
export const defaultCredentials: CredentialSetting = 'auto';

/** In the environment of the agent. */
export const credentialVariable = 'ISTHMUS_CREDENTIALS';

export const isCredentialSetting = (text: string | undefined): text is CredentialSetting =>
  credentialSettings.some((one) => one === text);
