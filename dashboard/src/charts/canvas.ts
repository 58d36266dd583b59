/** Canvases of the size that they are shown in. */

/** A copy of what is drawn. */
export function copyOf(canvas: HTMLCanvasElement): OffscreenCanvas {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  copy.getContext("2d")?.drawImage(canvas, 0, 0);
  return copy;
}

/** A canvas of this size in CSS pixels, sharp on any screen, cleared. */
export function fit(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = Math.min(3, devicePixelRatio || 1);
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.globalAlpha = 1;
  pen.clearRect(0, 0, width + 1, height + 1);
  return pen;
}
