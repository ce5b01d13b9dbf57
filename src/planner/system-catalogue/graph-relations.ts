/** Catalogue relations of graph tools: labels and types of relationships are the types that the caller may read. */
import type { Maker } from './row-maker.ts';

/** The version that tools check for; `doors/graph` announces the same. */
export const graphVersion = '5.13.0';

export const graphRows: Readonly<Record<string, Maker>> = {
  'db.labels': {
    *ofTable(table, facts) {
      if (table.inGraph.nodes && facts.isReadable(table)) yield { label: table.name };
    },
  },
  'db.relationshiptypes': {
    *ofTable(table, facts) {
      if (table.inGraph.edges && facts.isReadable(table)) yield { relationshipType: table.name };
    },
  },
  'db.propertykeys': {
    distinct: 'propertyKey',
    *ofTable(table, facts) {
      if (table.kind !== 'r' || !facts.isReadable(table)) return;
      for (const { name } of facts.columnsOf(table)) yield { propertyKey: name };
    },
  },
  'dbms.components': {
    *all() {
      yield { name: 'Neo4j Kernel', versions: JSON.stringify([graphVersion]), edition: 'community' };
    },
  },
};
