/** What the verifier said in this browser, step by step, and the same with one byte changed. */
import type { ComponentChildren } from 'preact';
import { save } from './parts.tsx';

export interface Verdict {
  readonly steps: readonly string[];
  readonly failure: string | null;
}

export function verdictOf(verify: () => readonly string[]): Verdict {
  try {
    return { steps: verify(), failure: null };
  } catch (error) {
    return { steps: [], failure: (error as Error).message };
  }
}

/** The document with one character of a base64 member exchanged, so many characters in. */
export function forged(text: string, member: string, at: number): string {
  const place = new RegExp(`("${member}":\\s*"[\\w+/=-]{${at}})(.)`);
  return text.replace(place, (_, before: string, letter: string) => before + (letter === 'A' ? 'B' : 'A'));
}

interface CheckedProps {
  readonly title: string;
  readonly verdict: Verdict;
  readonly isForged: boolean;
  readonly onForge: (isForged: boolean) => void;
  /** What can be taken along to check it elsewhere. */
  readonly files: readonly { readonly label: string; readonly name: string; readonly text: string; readonly type: string }[];
  readonly children: ComponentChildren;
}

export function Checked({ title, verdict: { steps, failure }, isForged, onForge, files, children }: CheckedProps) {
  return (
    <>
      <div class="head">
        <h2>{title}</h2>
        {failure === null ? <span class="tag good">proven in this browser</span> : <span class="tag bad">not proven</span>}
      </div>
      <ol class="steps" aria-live="polite">
        {steps.map((step) => (
          <li class="good">
            <span>{step}</span>
          </li>
        ))}
        {failure !== null && (
          <li class="bad">
            <span>{failure}</span>
          </li>
        )}
      </ol>
      <div class="bar" style={{ marginTop: '10px' }}>
        <button type="button" aria-pressed={isForged} onClick={() => onForge(!isForged)}>
          {isForged ? 'The bytes as they came' : 'Change one byte'}
        </button>
        {files.map(({ label, name, text, type }) => (
          <button type="button" onClick={() => save(name, text, type)}>
            {label}
          </button>
        ))}
      </div>
      <p class="small soft" style={{ marginTop: '8px' }}>
        {children}
      </p>
    </>
  );
}
