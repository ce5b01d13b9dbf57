/** Catalogue relations of graph tools: labels and types of relationships are the types that the caller may read. */
import type { CatalogueContents } from './catalogue-contents.ts';
import type { Maker } from './row-maker.ts';

/** The version that tools check for; `doors/graph` announces the same. */
export const graphVersion = '5.13.0';

function* propertyNames({ tables }: CatalogueContents): Iterable<string> {
  const seen = new Set<string>();
  for (const { isReadable, kind, columns } of tables)
    for (const { name } of isReadable && kind === 'r' ? (columns ?? []) : []) {
      if (!seen.has(name)) yield name;
      seen.add(name);
    }
}

export const graphRows: Readonly<Record<string, Maker>> = {
  'db.labels': {
    *ofTable({ name, isReadable, inGraph }) {
      if (isReadable && inGraph.nodes) yield { label: name };
    },
  },
  'db.relationshiptypes': {
    *ofTable({ name, isReadable, inGraph }) {
      if (isReadable && inGraph.edges) yield { relationshipType: name };
    },
  },
  'db.propertykeys': {
    *all(facts) {
      for (const propertyKey of propertyNames(facts)) yield { propertyKey };
    },
  },
  'dbms.components': {
    *all() {
      yield { name: 'Neo4j Kernel', versions: JSON.stringify([graphVersion]), edition: 'community' };
    },
  },
};
