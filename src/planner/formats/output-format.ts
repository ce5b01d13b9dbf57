/** The forms in which the rows of an answer leave, by name. Their writers are loaded when first asked for: two are large. */
import { ServiceError } from '../../errors.ts';
import type { Answer } from '../planner-contract.ts';

export type OutputFormat = 'csv' | 'json' | 'ndjson' | 'arrow' | 'parquet';

/**
 * The rows in pieces, each made when it is asked for; empty ones stand where only work was done. `facts` are kept in the file
 * where the format has a place for them. Throws at once where these rows can't be written.
 */
export type RowWriter = (
  rows: Pick<Answer, 'columns' | 'batches'>,
  facts: ReadonlyMap<string, string>,
) => Generator<Uint8Array, void>;

export interface OutputForm {
  readonly mediaType: string;
  readonly extension: string;
  /** Holds facts beside the rows. */
  readonly carriesFacts: boolean;
  readonly writer: () => Promise<RowWriter>;
}

export const outputForms: Readonly<Record<OutputFormat, OutputForm>> = {
  csv: {
    mediaType: 'text/csv; charset=utf-8; header=present',
    extension: 'csv',
    carriesFacts: false,
    writer: async () => {
      const { writeCsvChunks } = await import('./csv-rows.ts');
      return (rows) => writeCsvChunks(rows);
    },
  },
  json: {
    mediaType: 'application/json; charset=utf-8',
    extension: 'json',
    carriesFacts: false,
    writer: async () => {
      const { writeRowChunks } = await import('./json-rows.ts');
      return (rows) => writeRowChunks(rows, 'array');
    },
  },
  ndjson: {
    mediaType: 'application/x-ndjson; charset=utf-8',
    extension: 'ndjson',
    carriesFacts: false,
    writer: async () => {
      const { writeRowChunks } = await import('./json-rows.ts');
      return (rows) => writeRowChunks(rows, 'lines');
    },
  },
  arrow: {
    mediaType: 'application/vnd.apache.arrow.stream',
    extension: 'arrows',
    carriesFacts: true,
    writer: async () => (await import('./arrow-rows.ts')).writeArrowPieces,
  },
  parquet: {
    mediaType: 'application/vnd.apache.parquet',
    extension: 'parquet',
    carriesFacts: true,
    writer: async () => (await import('./parquet-rows.ts')).writeParquetPieces,
  },
};

export const outputFormats = Object.keys(outputForms) as readonly OutputFormat[];

export function isOutputFormat(name: string): name is OutputFormat {
  return Object.hasOwn(outputForms, name);
}

/** Throws REL_INVALID for a format that would silently drop parts of the answer beside the rows. */
export function refuseLoss({ provenance, facets }: Answer, { carriesFacts, extension }: OutputForm): void {
  if (carriesFacts || (provenance === null && facets === null)) return;
  const member = provenance === null ? 'facets' : 'provenance';
  throw new ServiceError(
    'REL_INVALID',
    `${extension} holds rows only; ask POST /query, or for arrow or parquet, to have ${member}`,
  );
}
