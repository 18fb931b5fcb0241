/** By what an audit record is found. */
import { sha256Hex } from '../access/secrets.ts';
import type { AuditField } from '../store/keys.ts';

/** Records of other values with the same hash are told apart when they are read. */
export const lookupHash = (field: AuditField, value: string): string => sha256Hex(`${field} ${value}`).slice(0, 16);
