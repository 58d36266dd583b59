/** The strokes a chart is made of: a canvas gives them on the screen, `SvgPen` in a file. One picture, two papers. */

export type Pen = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "rect"
  | "arc"
  | "fill"
  | "stroke"
  | "fillText"
  | "setLineDash"
  | "save"
  | "restore"
  | "clip"
  | "fillRect"
> & {
  fillStyle: string | CanvasGradient | CanvasPattern;
  strokeStyle: string | CanvasGradient | CanvasPattern;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  lineJoin: CanvasLineJoin;
  lineCap: CanvasLineCap;
};

const escape = (text: string): string =>
  text
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");
const round = (n: number): string => (Math.round(n * 100) / 100).toString();

/** Writes the strokes as SVG; every text is escaped. */
export class SvgPen implements Pen {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  lineJoin: CanvasLineJoin = "round";
  lineCap: CanvasLineCap = "round";
  private path: string[] = [];
  private dash: number[] = [];
  private readonly out: string[] = [];
  private readonly groups: number[] = [0];
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly title: string,
  ) {}

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${round(x)} ${round(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${round(x)} ${round(y)}`);
  }
  closePath(): void {
    this.path.push("Z");
  }
  rect(x: number, y: number, w: number, h: number): void {
    this.path.push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`);
  }
  arc(x: number, y: number, r: number): void {
    this.path.push(`M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`);
  }
  fill(): void {
    this.out.push(`<path d="${this.path.join("")}" fill="${escape(String(this.fillStyle))}"${this.alpha()}/>`);
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    this.out.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" ` +
        `fill="${escape(String(this.fillStyle))}"${this.alpha()}/>`,
    );
  }
  stroke(): void {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.out.push(
      `<path d="${this.path.join("")}" fill="none" stroke="${escape(String(this.strokeStyle))}" ` +
        `stroke-width="${this.lineWidth}" ` +
        `stroke-linejoin="${this.lineJoin}" stroke-linecap="${this.lineCap}"${dash}${this.alpha()}/>`,
    );
  }
  fillText(text: string, x: number, y: number): void {
    const anchor = { start: "start", left: "start", center: "middle", right: "end", end: "end" }[this.textAlign];
    const [, weight = "", size = "10px", family = "sans-serif"] = /^(?:(\d+) )?([\d.]+px) (.*)$/.exec(this.font) ?? [];
    const drop = this.textBaseline === "middle" ? "0.35em" : this.textBaseline === "top" ? "0.8em" : "0";
    this.out.push(
      `<text x="${round(x)}" y="${round(y)}" dy="${drop}" text-anchor="${anchor}" ` +
        `font-size="${size}" font-family="${escape(family)}"` +
        `${weight === "" ? "" : ` font-weight="${weight}"`} fill="${escape(String(this.fillStyle))}"` +
        `${this.alpha()}>${escape(text)}</text>`,
    );
  }
  setLineDash(dash: Iterable<number>): void {
    this.dash = [...dash];
  }
  save(): void {
    this.groups.push(0);
  }
  restore(): void {
    for (let n = this.groups.pop() ?? 0; n > 0; n--) this.out.push("</g>");
  }
  clip(): void {
    const id = `clip${this.clips++}`;
    this.out.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    this.groups.push((this.groups.pop() ?? 0) + 1);
  }

  /** The whole file, on `ground`. */
  file(ground: string): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">` +
      `<title>${escape(this.title)}</title><rect width="100%" height="100%" fill="${ground}"/>` +
      `${this.out.join("")}</svg>\n`
    );
  }

  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${round(this.globalAlpha)}"` : "";
  }
}
