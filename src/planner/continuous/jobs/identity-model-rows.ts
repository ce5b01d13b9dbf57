/** Weights that a job trained, as rows of the type that plays the role `identity_model`: one of each type, under its name. */
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { RowBatch } from '../../../log/values/columns.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { PutRows } from '../../../projections/command.ts';
import { rolePlayers, roles } from '../../table-functions/domain/roles.ts';
import type { Answer } from '../../planner-contract.ts';

/** Rows for an answer of TRAIN_IDENTITIES. REL_UNKNOWN_TYPE where no type plays the role, or where several do. */
export function modelRows(invocation: Invocation, { columns, batches }: Answer): PutRows {
  const { catalog } = invocation.snapshot();
  const [player, ...otherPlayers] = rolePlayers(catalog.types(), 'identity_model');
  if (player === undefined || otherPlayers.length > 0) {
    const playedRoleCount = player === undefined ? 'no type plays' : 'several types play';
    const roleDetail = `${playedRoleCount} the role identity_model: register ${roles.identity_model.defaultType}, or declare the role of one type`;
    throw new ServiceError('REL_UNKNOWN_TYPE', roleDetail);
  }
  const [ofTypeColumn, weightsColumn] = ['of_type', 'weights'].map((name) => columns.findIndex((each) => each.name === name)) as [
    number,
    number,
  ];
  const trainedModels: (readonly [Cell, Cell])[] = [];
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const modelRow = batch.selection === null ? batch.first + i : batch.selection[i]!;
      trainedModels.push([
        cellAt(batch.columns[ofTypeColumn]!, 'string', modelRow),
        cellAt(batch.columns[weightsColumn]!, 'json', modelRow),
      ]);
    }
  }
  const { primaryKey, properties } = catalog.type(player.type)!;
  const columnOf = (name: string, cellOf: (model: readonly [Cell, Cell]) => Cell): RowBatch['columns'][number] => {
    const type = properties[name]?.type ?? 'string';
    const modelColumnBuilder = new VectorBuilder(type, Math.max(1, trainedModels.length));
    for (const model of trainedModels) modelColumnBuilder.append(cellOf(model));
    return { name, type, vector: modelColumnBuilder.build() };
  };
  const columnsOfRole = ([ofRole, modelCellOrdinal]: readonly [string, 0 | 1]): RowBatch['columns'] => {
    const column = player.columns.get(ofRole)!;
    return column === primaryKey ? [] : [columnOf(column, (model) => model[modelCellOrdinal])];
  };
  return {
    kind: 'put-rows',
    type: player.type,
    rows: {
      length: trainedModels.length,
      columns: [
        columnOf(primaryKey ?? '_pk', ([type]) => type),
        ...columnsOfRole(['of_type', 0]),
        ...columnsOfRole(['weights', 1]),
      ],
    },
    atomic: true,
    createType: false,
    provenance: { source: 'jobs', method: 'em', confidence: 1, derivedFrom: null },
  };
}
