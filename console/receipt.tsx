/** The receipt of an erasure, checked in this browser by the file that is handed over with proofs. */
import { useState } from 'preact/hooks';
import { data, json, session } from './api.ts';
import { Head, Problem, save } from './parts.tsx';
import type { Verifier } from './verifier.ts';

interface Given {
  readonly receipt: string;
  readonly erasureKey: string;
  readonly salt: string;
  readonly subject: string;
}

type Verdict = { readonly steps: readonly string[]; readonly failure: string | null };

function judge(verifier: Verifier, key: string, { receipt, erasureKey, salt, subject }: Given): Verdict {
  try {
    return {
      steps: verifier.verifyReceipt(receipt, key, erasureKey, subject === '' ? null : { salt, subject }),
      failure: null,
    };
  } catch (error) {
    return { steps: [], failure: (error as Error).message };
  }
}

/** One character within the signed statement, another one of base64. */
const forge = (receipt: string): string =>
  receipt.replace(
    /("payload":\s*"[\w+/=-]{60})(.)/,
    (_, before: string, letter: string) => before + (letter === 'A' ? 'B' : 'A'),
  );

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
  const verdict =
    given && loaded ? judge(loaded.verifier, loaded.key, isForged ? { ...given, receipt: forge(given.receipt) } : given) : null;
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
      {verdict && given && loaded && (
        <section class="card" aria-label="verdict">
          <div class="head">
            <h2>Erasure</h2>
            {verdict.failure === null ? (
              <span class="tag good">proven in this browser</span>
            ) : (
              <span class="tag bad">not proven</span>
            )}
          </div>
          <ol class="steps" aria-live="polite">
            {verdict.steps.map((step) => (
              <li class="good">
                <span>{step}</span>
              </li>
            ))}
            {verdict.failure !== null && (
              <li class="bad">
                <span>{verdict.failure}</span>
              </li>
            )}
          </ol>
          <div class="bar">
            <button type="button" aria-pressed={isForged} onClick={() => setForged(!isForged)}>
              {isForged ? 'The bytes as they came' : 'Change one byte'}
            </button>
            <button type="button" onClick={() => save('receipt.json', given.receipt, 'application/json')}>
              Receipt
            </button>
            <button type="button" onClick={() => save('annals-verify.mjs', loaded.verifier.text, 'text/javascript')}>
              Verifier
            </button>
          </div>
          <p class="small soft">
            Offline: <code>node annals-verify.mjs receipt.json --key annals.key --erasure-key …</code>
          </p>
        </section>
      )}
    </>
  );
}
