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

/** Saves against what was there when the dialog was opened, although the page goes on to follow the broker. */
export function EditableLabels({ of, what, mayEdit, onSave }: EditableLabelsProps) {
  const [opened, setOpened] = useState<Pick<EditableLabelsProps, 'onSave'>>();
  const close = (): void => setOpened(undefined);
  return (
    <>
      <Labels of={of} />{' '}
      {mayEdit && (
        <button type="button" class="small" onClick={() => setOpened({ onSave })}>
          Edit labels
        </button>
      )}
      {opened && (
        <Dialog title={`Labels of ${what}`} onClose={close}>
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
            onCancel={close}
            onSubmit={async ({ labels = '' }) => {
              await opened.onSave(labelsIn(labels));
              close();
            }}
          />
        </Dialog>
      )}
    </>
  );
}
