"""What a person could not click on a page: asked of the browser."""

CONTROLS = "main :is(button, a.btn, input, select, summary), header :is(button, a)"
COVERED = """controls => [...document.querySelectorAll(controls)]
    .filter(one => {
      const box = one.getBoundingClientRect();
      const style = getComputedStyle(one);
      if (style.pointerEvents === 'none' || style.visibility === 'hidden') return false;  // they come with the pointer
      if (box.width < 4 || box.bottom > innerHeight || box.top < 0) return false;
      for (let at = one.parentElement; at !== null; at = at.parentElement) {
        const outer = at.getBoundingClientRect();
        const scrolls = /auto|scroll/.test(getComputedStyle(at).overflow);
        if (scrolls && (box.right > outer.right || box.bottom > outer.bottom || box.top < outer.top)) return false;
      }
      const covered = () => {
        const {left, right, top, bottom} = one.getBoundingClientRect();
        return [left + 3, right - 3].some(x => !one.contains(document.elementFromPoint(x, (top + bottom) / 2)));
      };
      if (!covered()) return false;
      scrollBy(0, box.top - innerHeight / 2);  // a phone's tabs lie over the foot of the page
      return covered();
    })
    .map(one => one.outerHTML.slice(0, 120))"""
"""Buttons, fields and links of which an end lies below something else, or beyond the edge of what they stand in."""
