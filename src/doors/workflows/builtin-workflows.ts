/** Workflows that every store has: those whose functions it has. */
import type { BuiltinWorkflow } from '../../governance/desks/workflow-desk.ts';
import type { Json } from '../../log/values/canonical-json.ts';

const screenStep = (screenedName: string): Json => ({ function: { name: 'SANCTIONS_SCREEN', arguments: [screenedName] } });

const alertStep = (alertTitle: string, matchedType: string, matchedKey: string): Json => ({
  alert: { title: alertTitle, severity: 'high', matched_type: matchedType, matched_pk: matchedKey },
});

const changedListingsSql = "FROM Listing WHERE system_from > now() - {{arguments.hours}} * INTERVAL '1 hour'";

export const builtinWorkflows: readonly BuiltinWorkflow[] = [
  {
    // `names`: those to be screened. An alert names the listing that one of them is like, and not the name.
    name: 'screen-against-lists',
    steps: [
      {
        for_each: {
          items: '{{arguments.names}}',
          steps: [
            screenStep('{{item}}'),
            {
              for_each: {
                items: '{{block.0.rows}}',
                steps: [alertStep('a screened name is like a listing', '{{item.type}}', '{{item.nodeId}}')],
              },
            },
          ],
        },
      },
    ],
  },
  {
    // `hours`: listings written so long ago at most have changed. An alert names the row of Party that one of them is like.
    name: 'rescreen-changed-listings',
    steps: [
      { query: { sql: `SELECT _pk ${changedListingsSql} LIMIT 1` } },
      {
        query: {
          sql: 'SELECT _pk, name FROM Party WHERE name IS NOT NULL AND {{steps.0.count}} > 0 ORDER BY _pk LIMIT 10000',
        },
      },
      {
        for_each: {
          items: '{{steps.1.rows}}',
          steps: [
            screenStep('{{item.name}}'),
            // The listings that were found, as JSON, have one that changed.
            {
              query: {
                sql: `SELECT _pk ${changedListingsSql} AND STRPOS({{block.0.rows}}, '"nodeId":"' || _pk || '"') > 0 LIMIT 1`,
              },
            },
            {
              if: {
                condition: '{{block.1.count}} > 0',
                // oxlint-disable-next-line unicorn/no-thenable -- a list of steps, as the language of workflows calls it
                then: [alertStep('a party is like a listing that changed', 'Party', '{{item._pk}}')],
              },
            },
          ],
        },
      },
    ],
  },
  {
    // `row`: of the type Party. It is written, and screened by its name.
    name: 'onboard-entity',
    steps: [
      { insert: { type: 'Party', row: '{{arguments.row}}' } },
      screenStep('{{arguments.row.name}}'),
      {
        if: {
          condition: '{{steps.1.count}} > 0',
          // oxlint-disable-next-line unicorn/no-thenable -- a list of steps, as the language of workflows calls it
          then: [alertStep('a new party is like a listing', 'Party', '{{steps.0.id}}')],
        },
      },
    ],
  },
];
