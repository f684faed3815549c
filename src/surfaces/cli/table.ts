/**
 * A table that fits: columns leave in a stated order when the width does not suffice, names are cut in the
 * middle, numbers never.
 */
import { cutMiddle, type Look, type Paint, padEnd, padStart, paint, widthOf } from "./look.ts";

export interface Column<Row> {
  readonly head: string;
  /** Columns of one group that stand beside each other name it once, in the first that is shown. */
  readonly group?: string;
  readonly align: "left" | "right";
  readonly cell: (row: Row) => string;
  readonly paint?: (row: Row) => Paint | null;
  /** Leaves when it is narrow: smaller numbers first; absent: never. */
  readonly leaves?: number;
  /** Names may become shorter, down to this. */
  readonly shrinksTo?: number;
}

const GAP = 2;

/** Null when even the columns that stay do not fit. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], look: Look): string[] | null {
  let shown = [...columns];
  for (;;) {
    const heads = shown.map((c, i) => headOf(c, shown[i - 1]));
    const widths = shown.map((c, i) => Math.max(widthOf(heads[i]!), ...rows.map((r) => widthOf(c.cell(r)))));
    const over = widths.reduce((sum, w) => sum + w + GAP, -GAP) - look.tableColumns;
    if (over <= 0) return lines(shown, heads, widths, rows, look);
    const next = firstToLeave(shown);
    if (next !== null) shown = shown.filter((c) => c !== next);
    else return shrunk(shown, heads, widths, over, rows, look);
  }
}

const headOf = <Row>(column: Column<Row>, before: Column<Row> | undefined): string =>
  column.group === undefined || column.group === before?.group ? column.head : `${column.group} ${column.head}`;

function firstToLeave<Row>(columns: readonly Column<Row>[]): Column<Row> | null {
  const leaving = columns.filter((c) => c.leaves !== undefined).sort((a, b) => (a.leaves ?? 0) - (b.leaves ?? 0));
  return leaving[0] ?? null;
}

function shrunk<Row>(
  columns: readonly Column<Row>[],
  heads: readonly string[],
  widths: readonly number[],
  over: number,
  rows: readonly Row[],
  look: Look,
): string[] | null {
  const index = columns.findIndex((c) => c.shrinksTo !== undefined);
  const column = columns[index];
  if (column?.shrinksTo === undefined || (widths[index] ?? 0) - over < column.shrinksTo) return null;
  return lines(columns, heads, widths.with(index, (widths[index] ?? 0) - over), rows, look);
}

function lines<Row>(
  columns: readonly Column<Row>[],
  heads: readonly string[],
  widths: readonly number[],
  rows: readonly Row[],
  look: Look,
): string[] {
  const line = (cells: readonly string[]): string => cells.join(" ".repeat(GAP)).trimEnd();
  const head = line(columns.map((c, i) => paint(look, "bold", aligned(heads[i]!, widths[i]!, c.align, look))));
  return [
    head,
    ...rows.map((row) =>
      line(
        columns.map((c, i) => {
          const text = aligned(c.cell(row), widths[i]!, c.align, look);
          const how = c.paint?.(row) ?? null;
          return how === null ? text : paint(look, how, text);
        }),
      ),
    ),
  ];
}

function aligned(text: string, width: number, align: "left" | "right", look: Look): string {
  const fitting = cutMiddle(text, width, look);
  return align === "left" ? padEnd(fitting, width) : padStart(fitting, width);
}
