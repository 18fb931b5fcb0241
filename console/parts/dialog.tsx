/** Dialogs: the browser's own, which keep the keyboard inside and close with Escape. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Form } from './form.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    element.current?.showModal();
    return () => element.current?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={onClose} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="small" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** What has to be typed. */
  readonly name: string;
  readonly submit: string;
  readonly children: ComponentChildren;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** For what cannot be taken back: the name is typed once more. */
export const Confirm = ({ title, name, submit, children, onConfirm, onClose }: ConfirmProps) => (
  <Dialog title={title} onClose={onClose}>
    {children}
    <Form
      fields={[{ name: 'name', label: `Type ${name} to go on`, required: true }]}
      submit={submit}
      danger
      lacks={(values) => (values.name === name ? undefined : 'the name')}
      onCancel={onClose}
      onSubmit={async () => {
        await onConfirm();
        onClose();
      }}
    />
  </Dialog>
);
