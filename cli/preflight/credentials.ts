/** Which credentials consumers of a cluster would get, and by what that is known before the agent asks its signer. Pure. */
import type { Rule, SignerFacts } from './facts.ts';

interface Evidence {
  readonly signs: boolean;
  readonly because: string;
}

/** Absent flags sign nothing: kube-controller-manager has no default key. */
function byFlags(flags: readonly string[]): Evidence {
  const keyed = flags.find((flag) => /^--cluster-signing-(kube-apiserver-client-)?key-file=./.test(flag));
  const stopped = flags.find((flag) => /^--controllers=.*-(csrsigning|certificatesigningrequest-signing)/.test(flag));
  if (keyed === undefined)
    return { signs: false, because: 'kube-controller-manager runs without --cluster-signing-key-file' };
  if (stopped !== undefined) return { signs: false, because: `kube-controller-manager runs with ${stopped}` };
  return { signs: true, because: `kube-controller-manager runs with ${keyed}` };
}

function evidenceOf(
  { found, signed, controllerManager }: SignerFacts,
  profile: { readonly title: string; readonly noClientSigner?: true },
): Evidence | undefined {
  if (found !== undefined) return { signs: found.kind === 'certificate', because: found.reason };
  if (signed !== undefined) return { signs: true, because: `the signer signed ${signed}` };
  if (profile.noClientSigner) return { signs: false, because: `${profile.title} signs no client certificates` };
  return controllerManager && byFlags(controllerManager);
}

export const credentials: Rule = ({ signer, found: { profile } }) => {
  const check = 'credentials';
  const { setting } = signer;
  if (setting === 'token') return { check, outcome: 'ok', text: 'consumers get tokens, as --credentials says' };
  const evidence = evidenceOf(signer, profile);
  if (evidence?.signs) return { check, outcome: 'ok', text: `consumers get certificates: ${evidence.because}` };
  if (setting === 'certificate' && evidence !== undefined) {
    return {
      check,
      outcome: 'stop',
      code: 'invalid_input',
      text: `consumers are to get certificates, and this cluster signs none: ${evidence.because}`,
      remedy: 'add --credentials auto, or --credentials token',
      detail: { field: 'credentials', value: setting },
    };
  }
  if (evidence !== undefined)
    return {
      check,
      outcome: 'adapted',
      text: `consumers get tokens: ${evidence.because}; consumers that run Liqo cannot use those`,
    };
  if (setting === 'certificate')
    return {
      check,
      outcome: 'unknown',
      text: 'consumers get certificates, as --credentials says; whether the cluster signs them shows with the first peering',
    };
  return {
    check,
    outcome: 'unknown',
    text: 'the agent asks the signer of the cluster when it starts: consumers get certificates if it signs, tokens if it refuses or says nothing for 30 s',
  };
};
