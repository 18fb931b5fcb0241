/** Labels that a reader may change. */
import { useState } from 'preact/hooks';
import { labelsIn, labelTexts } from '../model/text.ts';
import { Labels } from './bits.tsx';
import { Dialog } from './dialog.tsx';
import { Form } from './form.tsx';

interface EditableLabelsProps {
  readonly of: Readonly<Record<string, string>>;
  readonly what: string;
  readonly mayEdit: boolean;
  readonly onSave: (labels: Record<string, string>) => Promise<unknown>;
}

export function EditableLabels({ of, what, mayEdit, onSave }: EditableLabelsProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Labels of={of} />{' '}
      {mayEdit && (
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Edit labels
        </button>
      )}
      {open && (
        <Dialog title={`Labels of ${what}`} onClose={() => setOpen(false)}>
          <Form
            fields={[
              {
                name: 'labels',
                label: 'Labels',
                kind: 'long',
                value: labelTexts(of).join('\n'),
                hint: 'KEY=VALUE, one on each line: all that it is to have.',
              },
            ]}
            submit="Save"
            onCancel={() => setOpen(false)}
            onSubmit={async ({ labels = '' }) => {
              await onSave(labelsIn(labels));
              setOpen(false);
            }}
          />
        </Dialog>
      )}
    </>
  );
}
