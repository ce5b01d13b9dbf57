/** The receipt of an erasure, checked in this browser by the file that is handed over with proofs. */
import { useState } from 'preact/hooks';
import { data, json, session } from './api.ts';
import { Head, Problem } from './parts.tsx';
import { Checked, forged, verdictOf } from './verdict.tsx';
import type { Verifier } from './verifier.ts';

interface Given {
  readonly receipt: string;
  readonly erasureKey: string;
  readonly salt: string;
  readonly subject: string;
}

export function Receipt() {
  const [given, setGiven] = useState<Given | null>(null);
  const [loaded, setLoaded] = useState<{ verifier: Verifier; key: string } | null>(null);
  const [isForged, setForged] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const check = (event: SubmitEvent): void => {
    event.preventDefault();
    const field = (name: string): string =>
      ((event.currentTarget as HTMLFormElement).elements.namedItem(name) as HTMLInputElement).value.trim();
    const stated = {
      receipt: field('receipt'),
      erasureKey: field('erasure-key'),
      salt: field('salt'),
      subject: field('subject'),
    };
    const ownKey = field('log-key');
    const key = ownKey === '' ? json<{ key: string }>(data('/audit/log')).then((log) => log.key) : Promise.resolve(ownKey);
    Promise.all([key, import('./verifier.ts').then(({ loadVerifier }) => loadVerifier())]).then(
      ([found, verifier]) => {
        setLoaded({ key: found, verifier });
        setGiven(stated);
        setForged(false);
        setError(null);
      },
      (thrown: unknown) => setError(thrown),
    );
  };
  return (
    <>
      <Head title="Receipts">
        The receipt of an erasure proves that it was done, without saying whom it was about. It is checked here, in this browser.
      </Head>
      <form class="card" onSubmit={check}>
        <label for="receipt">Receipt, as ERASE … CERTIFY answers it</label>
        <textarea id="receipt" name="receipt" class="mono" rows={6} style={{ width: '100%', margin: '8px 0' }} required />
        <div class="bar">
          <label for="erasure-key">Erasure key</label>
          <input
            id="erasure-key"
            name="erasure-key"
            class="mono"
            size={44}
            required
            placeholder="verification_key of the answer"
          />
          <label for="log-key">Log key</label>
          <input
            id="log-key"
            name="log-key"
            class="mono"
            size={30}
            placeholder="that of this log"
            required={!session.value!.caller}
          />
        </div>
        <div class="bar">
          <label for="subject">Subject</label>
          <input id="subject" name="subject" size={18} placeholder="not needed" />
          <label for="salt">with its salt</label>
          <input id="salt" name="salt" class="mono" size={34} placeholder="shows that the receipt is of this subject" />
          <button type="submit" class="primary">
            Check
          </button>
        </div>
      </form>
      <Problem error={error} />
      {given && loaded && (
        <section class="card" aria-label="verdict">
          <Checked
            title="Erasure"
            verdict={verdictOf(() => {
              const { receipt, erasureKey, subject, salt } = given;
              const shown = isForged ? forged(receipt, 'payload', 60) : receipt;
              return loaded.verifier.verifyReceipt(shown, loaded.key, erasureKey, subject === '' ? null : { salt, subject });
            })}
            isForged={isForged}
            onForge={setForged}
            files={[
              { label: 'Receipt', name: 'receipt.json', text: given.receipt, type: 'application/json' },
              { label: 'Verifier', name: 'annals-verify.mjs', text: loaded.verifier.text, type: 'text/javascript' },
              { label: 'Key', name: 'annals.key', text: `${loaded.key}\n`, type: 'text/plain' },
            ]}
          >
            Offline: <code>node annals-verify.mjs receipt.json --key annals.key --erasure-key …</code>
          </Checked>
        </section>
      )}
    </>
  );
}
