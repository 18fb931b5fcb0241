/** Forms: labelled fields, one request at a time, the broker's own words when it refuses, and how long it has been thinking. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { messageOf } from '../data/api.ts';
import { Failure } from './bits.tsx';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind?: 'text' | 'number' | 'password' | 'select' | 'long' | 'check';
  readonly options?: readonly (readonly [value: string, title: string])[];
  readonly value?: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly placeholder?: string;
}

export type Values = Readonly<Record<string, string>>;

interface FormProps {
  readonly fields: readonly Field[];
  readonly submit: string;
  readonly danger?: boolean;
  /** Rejections are shown. */
  readonly onSubmit: (values: Values) => Promise<unknown>;
  readonly onCancel?: () => void;
  readonly children?: ComponentChildren;
  /** Undefined: may be sent. */
  readonly lacks?: (values: Values) => string | undefined;
}

const initial = (fields: readonly Field[]): Values =>
  Object.fromEntries(
    fields.map(({ name, value, kind, options }) => [
      name,
      value ?? (kind === 'select' ? (options?.[0]?.[0] ?? '') : ''),
    ]),
  );

export function Form({ fields, submit, danger, onSubmit, onCancel, children, lacks }: FormProps) {
  const [values, setValues] = useState<Values>(() => initial(fields));
  const [failure, setFailure] = useState<string>();
  const [busySince, setBusySince] = useState<number>();
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setFailure(undefined);
    setBusySince(Date.now());
    try {
      await onSubmit(values);
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusySince(undefined);
    }
  };
  const busy = busySince !== undefined;
  return (
    <form class="form" onSubmit={(event) => void send(event)}>
      {fields.map((field) => (
        <Input
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
        />
      ))}
      {children}
      <Failure message={failure} />
      <div class="actions">
        <button type="submit" class={danger ? 'danger' : 'primary'} disabled={busy || lacks?.(values) !== undefined}>
          {submit}
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        {busy && <Elapsed since={busySince} words="The broker is asked" />}
      </div>
    </form>
  );
}

function Input({ field, value, onChange }: { field: Field; value: string; onChange: (value: string) => void }) {
  const id = useId();
  const { label, kind = 'text', options = [], hint, required, placeholder } = field;
  const about = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  const type = (event: { readonly currentTarget: { readonly value: string } }): void =>
    onChange(event.currentTarget.value);
  return (
    <div class={kind === 'check' ? 'field check' : 'field'}>
      <label for={id}>{label}</label>
      {kind === 'select' ? (
        <select id={id} value={value} required={required ?? false} onChange={type} {...about}>
          {options.map(([key, title]) => (
            <option key={key} value={key}>
              {title}
            </option>
          ))}
        </select>
      ) : kind === 'long' ? (
        <textarea id={id} value={value} rows={3} onInput={type} {...about} />
      ) : kind === 'check' ? (
        <input
          id={id}
          type="checkbox"
          checked={value === 'yes'}
          onChange={(event) => onChange(event.currentTarget.checked ? 'yes' : '')}
          {...about}
        />
      ) : (
        <input
          id={id}
          {...typeOf(kind)}
          value={value}
          required={required ?? false}
          placeholder={placeholder ?? ''}
          autocomplete="off"
          spellcheck={false}
          onInput={type}
          {...about}
        />
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

const typeOf = (kind: 'text' | 'number' | 'password') =>
  kind === 'text'
    ? { type: 'text' as const }
    : kind === 'number'
      ? { type: 'number' as const }
      : { type: 'password' as const };

/** `words, 3 s`: a wait that a reader can see. */
export function Elapsed({ since, words }: { since: number; words: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="busy" role="status">
      {words}, {Math.max(0, Math.round((Date.now() - since) / 1_000))} s
    </span>
  );
}

/** Only what was filled in. */
export const filled = (values: Values, ...names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (values[name] ? [[name, values[name].trim()]] : [])));
