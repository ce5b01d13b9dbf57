/** One row through both times, as a picture and as a table, and its proof. */
import { useMemo, useState } from 'preact/hooks';
import { data, json, post } from './api.ts';
import { keyOf } from './catalog.ts';
import { instantText, isInstantColumn, plural, textOf } from './format.ts';
import { Cell, Fields, Head, Heading, Instant, Problem, useLoad } from './parts.tsx';
import { amend, link, place } from './place.ts';
import { Proof, useProof } from './proof.tsx';
import { forever, literal, name } from './sql.ts';

export interface Version {
  readonly cells: Readonly<Record<string, unknown>>;
  readonly validFrom: bigint;
  readonly validTo: bigint;
  readonly systemFrom: bigint;
  readonly systemTo: bigint;
  readonly provenance: Readonly<Record<string, unknown>> | null;
}

const end = BigInt(forever);

/** Believed now about now. */
function isNow({ validFrom, validTo, systemTo }: Version): boolean {
  const now = BigInt(Date.now()) * 1_000_000n;
  return systemTo === end && validFrom <= now && now < validTo;
}

async function loadVersions(type: string, key: string, signal: AbortSignal): Promise<readonly Version[]> {
  const column = keyOf(type);
  const sql = `SELECT * FROM ${name(type)} WHERE ${name(column)} = ${literal(key)} ORDER BY system_from LIMIT 500 WITH PROVENANCE`;
  const reply = await json<{ rows: Record<string, unknown>[]; provenance?: Record<string, unknown>[] }>(
    data('/query', { ...post({ sql }), signal }),
  );
  const ns = (value: unknown): bigint => BigInt(String(value));
  return reply.rows.map((row, i) => ({
    cells: Object.fromEntries(Object.entries(row).filter(([each]) => !isInstantColumn(each))),
    validFrom: ns(row['valid_from']),
    validTo: ns(row['valid_to']),
    systemFrom: ns(row['system_from']),
    systemTo: ns(row['system_to']),
    provenance: reply.provenance?.[i] ?? null,
  }));
}

export function Row() {
  const { type = '', key = '', version } = place.value.params;
  const { value: versions, error } = useLoad(`${type}/${key}`, (signal) => loadVersions(type, key, signal));
  const chosen =
    versions?.find(({ systemFrom }) => String(systemFrom) === version) ??
    versions?.find(isNow) ??
    versions?.findLast(({ systemTo }) => systemTo === end) ??
    versions?.at(-1);
  return (
    <>
      <Head title={`${type} ${key}`}>
        {versions && plural(versions.length, 'version')} ·{' '}
        <a href={link('query', { sql: `SELECT * FROM ${name(type)}\nWHERE ${name(keyOf(type))} = ${literal(key)}` })}>
          as a statement
        </a>
      </Head>
      <Problem error={error} />
      {versions && versions.length === 0 && <p>No version of this row may be seen here.</p>}
      {versions && chosen && (
        <>
          <Picture versions={versions} chosen={chosen} onChoose={(each) => amend({ version: String(each.systemFrom) })} />
          <Version key={String(chosen.systemFrom)} chosen={chosen} row={textOf(chosen.cells['_pk'] ?? key)} />
          <VersionTable versions={versions} chosen={chosen} onChoose={(each) => amend({ version: String(each.systemFrom) })} />
        </>
      )}
    </>
  );
}

/** A version with what is said of it: where its values are from, who wrote them and for what, and the proof of both. */
function Version({ chosen, row }: { chosen: Version; row: string }) {
  const proof = useProof(String(chosen.systemFrom), row);
  const writer = proof.value?.writer ?? null;
  return (
    <div class="panes">
      <section class="card" aria-label="version">
        <h2>
          Believed <Instant ns={chosen.systemFrom} /> – <Instant ns={chosen.systemTo} />
        </h2>
        <p class="soft small">
          True <Instant ns={chosen.validFrom} /> – <Instant ns={chosen.validTo} />
        </p>
        <Fields of={Object.entries(chosen.cells).filter(([each]) => each !== '_provenance')} />
        {chosen.provenance && (
          <>
            <h3>Provenance</h3>
            <Fields of={Object.entries(chosen.provenance)} nameOf={(each) => (each === 'recorded_at' ? 'system_from' : each)} />
          </>
        )}
        {writer && (
          <>
            <h3>Written</h3>
            <Fields
              of={[
                ['by', writer.principal],
                ['through', writer.door],
                ['for', writer.purpose ?? 'no purpose'],
              ]}
            />
          </>
        )}
      </section>
      <section class="card" aria-label="proof">
        <Proof {...proof} />
      </section>
    </div>
  );
}

interface VersionsProps {
  readonly versions: readonly Version[];
  readonly chosen: Version;
  onChoose(version: Version): void;
}

const size = { width: 960, height: 300, left: 118, right: 14, top: 14, bottom: 34 };

/** Valid time runs to the right, system time upwards. Instants stand evenly: what matters is their order. */
function Picture({ versions, chosen, onChoose }: VersionsProps) {
  const [cross, setCross] = useState<{ x: number; y: number } | null>(null);
  const { xs, ys } = useMemo(() => {
    const sorted = (all: readonly bigint[]): bigint[] => [...new Set(all)].toSorted((a, b) => (a < b ? -1 : 1));
    return {
      xs: sorted(versions.flatMap((each) => [each.validFrom, each.validTo])),
      ys: sorted(versions.flatMap((each) => [each.systemFrom, each.systemTo])),
    };
  }, [versions]);
  const x = (at: bigint): number =>
    size.left + (xs.indexOf(at) / Math.max(1, xs.length - 1)) * (size.width - size.left - size.right);
  const y = (at: bigint): number =>
    size.height - size.bottom - (ys.indexOf(at) / Math.max(1, ys.length - 1)) * (size.height - size.top - size.bottom);
  const names = tellingColumns(versions);
  const under =
    cross &&
    versions.find(
      (each) =>
        x(each.validFrom) <= cross.x && cross.x < x(each.validTo) && y(each.systemTo) <= cross.y && cross.y < y(each.systemFrom),
    );
  return (
    <figure style={{ margin: 0 }}>
      <svg
        class="picture"
        viewBox={`0 0 ${size.width} ${size.height}`}
        role="img"
        aria-label="versions: valid time across, system time up; the table below says the same"
        onMouseMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          setCross({
            x: ((event.clientX - box.left) / box.width) * size.width,
            y: ((event.clientY - box.top) / box.height) * size.height,
          });
        }}
        onMouseLeave={() => setCross(null)}
      >
        {xs.map(
          (at, i) =>
            (xs.length <= 9 || i % Math.ceil(xs.length / 9) === 0) && (
              <text x={Math.min(x(at), size.width - 34)} y={size.height - 14} text-anchor={i === 0 ? 'start' : 'middle'}>
                {axisText(at, xs)}
              </text>
            ),
        )}
        {ys.map(
          (at, i) =>
            (ys.length <= 9 || i % Math.ceil(ys.length / 9) === 0) && (
              <text x={size.left - 8} y={y(at) + 4} text-anchor="end">
                {axisText(at, ys)}
              </text>
            ),
        )}
        {versions.map((each) => {
          const width = x(each.validTo) - x(each.validFrom);
          const label = names.map((column) => textOf(each.cells[column] ?? '–')).join(' · ');
          return (
            <g onClick={() => onChoose(each)}>
              <rect
                class={`version${each.systemTo === end ? '' : ' superseded'}${each === chosen ? ' chosen' : ''}`}
                x={x(each.validFrom) + 1}
                y={y(each.systemTo) + 1}
                width={Math.max(2, width - 2)}
                height={Math.max(2, y(each.systemFrom) - y(each.systemTo) - 2)}
                rx="3"
              />
              {width > 60 && (
                <text class="label" x={x(each.validFrom) + 8} y={y(each.systemFrom) - 8}>
                  {label.slice(0, Math.floor(width / 7.2))}
                </text>
              )}
            </g>
          );
        })}
        {cross && cross.x > size.left && cross.y < size.height - size.bottom && (
          <>
            <line class="cross" x1={size.left} x2={size.width} y1={cross.y} y2={cross.y} />
            <line class="cross" x1={cross.x} x2={cross.x} y1={0} y2={size.height - size.bottom} />
          </>
        )}
        <text x={size.width - size.right} y={size.height - 2} text-anchor="end">
          true →
        </text>
        <text x={4} y={12}>
          believed ↑
        </text>
      </svg>
      <figcaption class="small soft" aria-live="off">
        {under ? (
          <>
            Believed from {instantText(under.systemFrom)}, about {instantText(under.validFrom)} on:{' '}
            <span class="mono">{names.map((column) => `${column} ${textOf(under.cells[column] ?? '–')}`).join(', ')}</span>
          </>
        ) : (
          'Point at the picture: what was believed then, about then. Dashed versions are superseded.'
        )}
      </figcaption>
    </figure>
  );
}

/** Within one day the time of the day tells instants apart. */
function axisText(at: bigint, all: readonly bigint[]): string {
  const days = new Set(all.filter((each) => each !== end).map((each) => instantText(each).slice(0, 10)));
  const text = instantText(at);
  return days.size === 1 && text.length > 10 ? text.slice(11, 23) : text.slice(0, 10);
}

/** Columns whose values differ between versions, a few of them. */
function tellingColumns(versions: readonly Version[]): readonly string[] {
  const names = Object.keys(versions[0]?.cells ?? {}).filter(
    (each) => !each.startsWith('_') && each !== 'namespace_path' && each !== 'tenant_id',
  );
  const differing = names.filter((each) => new Set(versions.map(({ cells }) => JSON.stringify(cells[each]))).size > 1);
  return (differing.length > 0 ? differing : names.filter((each) => each !== 'id')).slice(0, 3);
}

function VersionTable({ versions, chosen, onChoose }: VersionsProps) {
  const names = tellingColumns(versions);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="versions">
      <table class="plain">
        <thead>
          <tr>
            {['believed from', 'believed to', 'true from', 'true to', ...names, ''].map((each) => (
              <Heading text={each} />
            ))}
          </tr>
        </thead>
        <tbody>
          {versions.map((each) => (
            <tr class={each === chosen ? 'changed' : ''}>
              <td>
                <Instant ns={each.systemFrom} />
              </td>
              <td>
                <Instant ns={each.systemTo} />
              </td>
              <td>
                <Instant ns={each.validFrom} />
              </td>
              <td>
                <Instant ns={each.validTo} />
              </td>
              {names.map((column) => (
                <td>
                  <Cell value={each.cells[column]} name={column} />
                </td>
              ))}
              <td>
                <button type="button" class="plain" aria-pressed={each === chosen} onClick={() => onChoose(each)}>
                  Show
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
