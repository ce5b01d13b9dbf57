/** Two sliders: what was true, and what was believed. They stop where something changed. */
import { useMemo } from 'preact/hooks';
import { data, json, post } from './api.ts';
import { instantLiteral, instantText, nanosOf } from './format.ts';
import { Problem, useLoad } from './parts.tsx';
import { forever, type Instants, name } from './sql.ts';

const versionsMax = 20_000;
const stopsMax = 2_000;

interface Stops {
  readonly true: readonly bigint[];
  readonly believed: readonly bigint[];
}

async function loadStops(type: string, signal: AbortSignal): Promise<Stops> {
  const sql = `SELECT valid_from, valid_to, system_from, system_to FROM ${name(type)} LIMIT ${versionsMax}`;
  const { rows } = await json<{ rows: Record<string, string | number>[] }>(data('/query', { ...post({ sql }), signal }));
  const stops = (columns: readonly string[]): bigint[] => {
    const all = new Set(rows.flatMap((row) => columns.map((column) => String(row[column]))));
    all.delete(forever);
    const sorted = [...all].map(BigInt).toSorted((a, b) => (a < b ? -1 : 1));
    // Of very many the ends of equal portions are left.
    return sorted.length <= stopsMax ? sorted : sorted.filter((_, i) => i % Math.ceil(sorted.length / stopsMax) === 0);
  };
  return { true: stops(['valid_from', 'valid_to']), believed: stops(['system_from', 'system_to']) };
}

interface TimeBarProps {
  readonly type: string;
  readonly instants: Instants;
  onMove(instants: Instants): void;
}

export function TimeBar({ type, instants, onMove }: TimeBarProps) {
  const { value, error } = useLoad(type, (signal) => loadStops(type, signal));
  if (error) return <Problem error={error} />;
  if (value === undefined) return <div class="card soft small">Looking for instants at which something changed …</div>;
  return (
    <div class="card time" role="group" aria-label="time">
      <Slider label="True" stops={value.true} at={instants.true} onMove={(at) => onMove({ ...instants, true: at })} />
      <Slider
        label="Believed"
        stops={value.believed}
        at={instants.believed}
        onMove={(at) => onMove({ ...instants, believed: at })}
      />
    </div>
  );
}

interface SliderProps {
  readonly label: string;
  readonly stops: readonly bigint[];
  /** null: now, the last stop. */
  readonly at: string | null;
  onMove(at: string | null): void;
}

/** The slider's steps are stops, not days: between two of them nothing changed. */
function Slider({ label, stops, at, onMove }: SliderProps) {
  const index = useMemo(() => {
    if (at === null) return stops.length;
    const ns = nanosOf(at);
    const next = stops.findIndex((stop) => stop > ns);
    return next === -1 ? stops.length - 1 : Math.max(0, next - 1);
  }, [stops, at]);
  const id = `slider-${label}`;
  const text = at === null ? 'now' : instantText(nanosOf(at));
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        type="range"
        min={0}
        max={stops.length}
        value={index}
        aria-valuetext={text}
        onInput={(event) => {
          const stop = stops[Number(event.currentTarget.value)];
          onMove(stop === undefined ? null : instantLiteral(stop));
        }}
      />
      <output for={id}>{text}</output>
      <div class="ticks" aria-hidden="true">
        {stops.length <= 400 && stops.map((_, i) => <i style={{ left: `${(i / stops.length) * 100}%` }} />)}
      </div>
    </>
  );
}
