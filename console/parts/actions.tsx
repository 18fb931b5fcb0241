/** Buttons that do something: after a form, after the name was typed, or at once. Each says how it went. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { messageOf } from '../data/api.ts';
import { Failure } from './bits.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import { Elapsed, type Field, Form, type Values } from './form.tsx';

interface FormButtonProps {
  readonly label: string;
  readonly title?: string;
  readonly fields: readonly Field[];
  readonly submit: string;
  readonly intro?: ComponentChildren;
  readonly lacks?: (values: Values) => string | undefined;
  /** What it resolves with is shown until the reader closes it: a secret that is shown once. Nothing: the dialog closes. */
  readonly onSubmit: (values: Values) => Promise<ComponentChildren>;
}

/** Submits what it was given when it was opened: an edit is one of what its reader saw then. */
export function FormButton({ label, title = label, fields, submit, intro, lacks, onSubmit }: FormButtonProps) {
  const [opened, setOpened] = useState<Pick<FormButtonProps, 'onSubmit'>>();
  const [outcome, setOutcome] = useState<ComponentChildren>();
  const close = (): void => {
    setOpened(undefined);
    setOutcome(undefined);
  };
  return (
    <>
      <button type="button" onClick={() => setOpened({ onSubmit })}>
        {label}
      </button>
      {opened && (
        <Dialog title={title} onClose={close}>
          {outcome === undefined ? (
            <>
              {intro}
              <Form
                fields={fields}
                submit={submit}
                onCancel={close}
                {...(lacks && { lacks })}
                onSubmit={async (values) => {
                  const shown = await opened.onSubmit(values);
                  if (shown === undefined || shown === null) close();
                  else setOutcome(shown);
                }}
              />
            </>
          ) : (
            <>
              {outcome}
              <div class="actions">
                <button type="button" class="primary" onClick={close}>
                  Done
                </button>
              </div>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}

interface ConfirmButtonProps {
  readonly label: string;
  readonly title: string;
  /** What has to be typed. */
  readonly name: string;
  readonly children?: ComponentChildren;
  readonly onConfirm: () => Promise<unknown>;
}

export function ConfirmButton({ label, title, name, children, onConfirm }: ConfirmButtonProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="small" aria-label={`${label} ${name}`} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <Confirm title={title} name={name} submit={label} onClose={() => setOpen(false)} onConfirm={onConfirm}>
          {children}
        </Confirm>
      )}
    </>
  );
}

interface ActButtonProps {
  readonly label: string;
  /** For screen readers, where several buttons have the same label. */
  readonly about?: string;
  /** What it resolves with is shown beside the button. */
  readonly onAct: () => Promise<ComponentChildren>;
}

export function ActButton({ label, about, onAct }: ActButtonProps) {
  const [busySince, setBusySince] = useState<number>();
  const [failure, setFailure] = useState<string>();
  const [outcome, setOutcome] = useState<ComponentChildren>();
  const act = async (): Promise<void> => {
    setBusySince(Date.now());
    setFailure(undefined);
    try {
      setOutcome(await onAct());
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusySince(undefined);
    }
  };
  return (
    <>
      <button
        type="button"
        class="small"
        disabled={busySince !== undefined}
        {...(about !== undefined && { 'aria-label': `${label} ${about}` })}
        onClick={() => void act()}
      >
        {label}
      </button>
      {busySince !== undefined && <Elapsed since={busySince} words="The broker is asked" />}
      {outcome !== undefined && outcome !== null && <span role="status">{outcome}</span>}
      <Failure message={failure} />
    </>
  );
}
