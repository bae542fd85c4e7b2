"use strict";
// Plays a run: fetches its frames, or takes them from the page, and draws them with WebGL 2.
//
// Tests look at `weftView`: `ready`, `frame`, `frames`, `errors`, `drawn` (frames drawn
// so far), `stall` (the longest time between two drawings while it plays, in ms).
const weftView = { ready: false, frame: -1, frames: 0, drawn: 0, stall: 0, errors: [], playing: false };
window.addEventListener("error", (event) => weftView.errors.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => weftView.errors.push(String(event.reason)));

function drawsInSoftware() {
    const gl = document.createElement("canvas").getContext("webgl2");
    const told = gl && gl.getExtension("WEBGL_debug_renderer_info");
    const name = gl ? String(gl.getParameter(told ? told.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : "";
    if (gl) gl.getExtension("WEBGL_lose_context")?.loseContext();
    return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

(() => {
    const element = (id) => document.getElementById(id);
    const canvas = element("canvas");
    const message = element("message");
    // Without a graphics card smooth edges take longer than all the rest.
    const gl = canvas.getContext("webgl2", { antialias: !drawsInSoftware(), alpha: false });
    const say = (text) => {
        message.textContent = text;
        message.hidden = text === "";
    };
    if (!gl) {
        say("This browser draws no WebGL 2, which the view needs. Frames open in ParaView: frames.pvd.");
        return;
    }

    // --- where frames come from ---

    const embedded = element("run");
    const MOST_KEPT = 192 << 20;
    const AHEAD = 6;
    const kept = new Map();
    const asked = new Map();
    let keptBytes = 0;
    let run = { name: "", bodies: [], exit: null, times: [] };

    async function look() {
        if (embedded) return JSON.parse(embedded.textContent);
        const answer = await fetch("/run");
        if (!answer.ok) throw new Error((await answer.text()).trim());
        return answer.json();
    }

    async function bytesOf(number) {
        if (embedded) {
            const text = atob(element(`frame-${number}`).textContent);
            const bytes = new Uint8Array(text.length);
            for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
            return bytes.buffer;
        }
        const answer = await fetch(`/frame/${number}`);
        if (!answer.ok) throw new Error((await answer.text()).trim());
        return answer.arrayBuffer();
    }

    // Parts of a block are views of it.
    function parse(block) {
        const length = new DataView(block).getUint32(0, true);
        const header = JSON.parse(new TextDecoder().decode(new Uint8Array(block, 4, length)));
        let at = 4 + length;
        const take = (kind, count) => {
            const part = new kind(block, at, count);
            at += 4 * count;
            return part;
        };
        const meshes = header.meshes.map((mesh) => ({
            topology: mesh.topology,
            positions: take(Float32Array, 3 * mesh.vertices),
            triangles: take(Uint32Array, 3 * mesh.triangles),
            arrays: mesh.arrays.map((array) => ({
                ...array,
                values: take(Float32Array, array.of_triangles ? mesh.triangles : mesh.vertices),
            })),
        }));
        return { time: header.time, meshes, bytes: block.byteLength };
    }

    function frameOf(number) {
        if (kept.has(number)) return Promise.resolve(kept.get(number));
        if (!asked.has(number)) {
            const frame = bytesOf(number).then((block) => {
                const frame = parse(block);
                kept.set(number, frame);
                keptBytes += frame.bytes;
                for (const old of [...kept.keys()]) {
                    if (keptBytes <= MOST_KEPT) break;
                    // The first frame is what others are held against.
                    const ahead = (old - weftView.frame + run.times.length) % run.times.length;
                    if (old === 0 || old === number || ahead <= AHEAD) continue;
                    keptBytes -= kept.get(old).bytes;
                    kept.delete(old);
                }
                return frame;
            });
            asked.set(number, frame);
            const forget = () => asked.delete(number);
            frame.then(forget, forget);
        }
        return asked.get(number);
    }

    // --- drawing ---

    const VERTEX = `#version 300 es
        in vec3 position; in vec3 normal; in vec4 colour;
        uniform mat4 view;
        out vec3 n; out vec4 c;
        void main() { n = normal; c = colour; gl_Position = view * vec4(position, 1.0); }`;
    const FRAGMENT = `#version 300 es
        precision mediump float;
        in vec3 n; in vec4 c;
        uniform vec3 light; uniform float flat_colour;
        out vec4 drawn;
        void main() {
            vec3 m = normalize(gl_FrontFacing ? n : -n);
            float lit = 0.45 + 0.55 * abs(dot(m, light)) * (dot(m, light) > 0.0 ? 1.0 : 0.6);
            drawn = vec4(c.rgb * mix(gl_FrontFacing ? lit : 0.85 * lit, 0.25, flat_colour), 1.0);
        }`;
    const shader = (kind, text) => {
        const made = gl.createShader(kind);
        gl.shaderSource(made, text);
        gl.compileShader(made);
        if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
        return made;
    };
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, shader(gl.FRAGMENT_SHADER, FRAGMENT));
    ["position", "normal", "colour"].forEach((name, place) => gl.bindAttribLocation(program, place, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const uniform = (name) => gl.getUniformLocation(program, name);
    const [atView, atLight, atFlat] = ["view", "light", "flat_colour"].map(uniform);

    // Eight colours that are apart for any colour vision [Wong 2011], and lighter ones.
    const APART = [
        [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [240, 228, 66],
        [120, 120, 120], [128, 184, 217], [242, 207, 128], [128, 206, 185], [230, 188, 211],
    ];
    const CLOTH = [118, 146, 190];
    const BODY = [150, 148, 142];
    // Viridis at nine places.
    const RAMP = [
        [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
        [170, 220, 50], [253, 231, 37],
    ];
    const ramp = (share, into, at) => {
        const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
        const low = Math.min(Math.floor(place), RAMP.length - 2);
        for (let k = 0; k < 3; k++) {
            into[at + k] = RAMP[low][k] + (place - low) * (RAMP[low + 1][k] - RAMP[low][k]);
        }
    };

    // A mesh as it is drawn: vertices between triangles of several patches are there once for each
    // patch, so that what is of a patch has one colour in it.
    class Drawn {
        constructor() {
            this.array = gl.createVertexArray();
            this.buffers = [0, 1, 2, 3, 4].map(() => gl.createBuffer());
            this.topology = null;
            this.edges = 0;
        }

        shape(mesh) {
            const parts = mesh.arrays.find((array) => array.of_triangles && array.name === "patch");
            if (this.topology === mesh.topology && this.count === mesh.triangles.length) return;
            this.topology = mesh.topology;
            this.count = mesh.triangles.length;
            const corners = mesh.triangles;
            const copies = new Map();
            const source = [];
            const index = new Uint32Array(corners.length);
            const triangleOf = [];
            const vertices = mesh.positions.length / 3;
            for (let k = 0; k < corners.length; k++) {
                const triangle = (k / 3) | 0;
                const key = (parts ? parts.values[triangle] : 0) * vertices + corners[k];
                let copy = copies.get(key);
                if (copy === undefined) {
                    copy = source.length;
                    copies.set(key, copy);
                    source.push(corners[k]);
                    triangleOf.push(triangle);
                }
                index[k] = copy;
            }
            this.index = index;
            this.source = Uint32Array.from(source);
            this.triangleOf = Uint32Array.from(triangleOf);
            this.positions = new Float32Array(3 * source.length);
            this.normals = new Int8Array(4 * source.length);
            this.colours = new Uint8Array(4 * source.length);
            this.sums = new Float32Array(3 * vertices);
            gl.bindVertexArray(this.array);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[3]);
            gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, index, gl.STATIC_DRAW);
            const attribute = (place, size, kind, normalised) => {
                gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[place]);
                gl.enableVertexAttribArray(place);
                gl.vertexAttribPointer(place, size, kind, normalised, 0, 0);
            };
            attribute(0, 3, gl.FLOAT, false);
            attribute(1, 4, gl.BYTE, true);
            attribute(2, 4, gl.UNSIGNED_BYTE, true);
            this.edges = 0;
        }

        place(mesh) {
            const { sums, source, positions, normals } = this;
            const x = mesh.positions;
            const corners = mesh.triangles;
            sums.fill(0);
            for (let k = 0; k < corners.length; k += 3) {
                const a = 3 * corners[k], b = 3 * corners[k + 1], c = 3 * corners[k + 2];
                const ux = x[b] - x[a], uy = x[b + 1] - x[a + 1], uz = x[b + 2] - x[a + 2];
                const vx = x[c] - x[a], vy = x[c + 1] - x[a + 1], vz = x[c + 2] - x[a + 2];
                const nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
                sums[a] += nx; sums[a + 1] += ny; sums[a + 2] += nz;
                sums[b] += nx; sums[b + 1] += ny; sums[b + 2] += nz;
                sums[c] += nx; sums[c + 1] += ny; sums[c + 2] += nz;
            }
            for (let k = 0; k < source.length; k++) {
                const s = 3 * source[k], t = 3 * k;
                positions[t] = x[s]; positions[t + 1] = x[s + 1]; positions[t + 2] = x[s + 2];
                const scale = 127 / (Math.hypot(sums[s], sums[s + 1], sums[s + 2]) || 1);
                normals[4 * k] = scale * sums[s];
                normals[4 * k + 1] = scale * sums[s + 1];
                normals[4 * k + 2] = scale * sums[s + 2];
            }
            gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[0]);
            gl.bufferData(gl.ARRAY_BUFFER, positions, gl.STREAM_DRAW);
            gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[1]);
            gl.bufferData(gl.ARRAY_BUFFER, normals, gl.STREAM_DRAW);
        }

        paint() {
            gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[2]);
            gl.bufferData(gl.ARRAY_BUFFER, this.colours, gl.STREAM_DRAW);
        }

        lines() {
            if (this.edges) return;
            const seen = new Set();
            const { index } = this;
            const lines = [];
            const size = this.source.length;
            for (let k = 0; k < index.length; k++) {
                const a = index[k], b = index[k % 3 === 2 ? k - 2 : k + 1];
                const key = Math.min(a, b) * size + Math.max(a, b);
                if (!seen.has(key)) {
                    seen.add(key);
                    lines.push(a, b);
                }
            }
            this.edges = lines.length;
            gl.bindVertexArray(null);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[4]);
            gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(lines), gl.STATIC_DRAW);
        }

        draw(withEdges) {
            if (withEdges) this.lines();
            gl.bindVertexArray(this.array);
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[3]);
            gl.uniform1f(atFlat, 0);
            gl.drawElements(gl.TRIANGLES, this.index.length, gl.UNSIGNED_INT, 0);
            if (withEdges) {
                gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[4]);
                gl.uniform1f(atFlat, 1);
                gl.drawElements(gl.LINES, this.edges, gl.UNSIGNED_INT, 0);
            }
        }
    }

    const drawn = [];
    let shown = null;

    // --- colours ---

    const STRETCH = "stretch since the first frame";
    const PLAIN = "none";
    const WORDS = { speed: "m/s" };

    // Longest edge of each vertex over that of the first frame, less one.
    function stretch(mesh, first) {
        const most = new Float32Array(mesh.positions.length / 3);
        const x = mesh.positions, y = first.positions, corners = mesh.triangles;
        for (let k = 0; k < corners.length; k++) {
            const a = corners[k], b = corners[k % 3 === 2 ? k - 2 : k + 1];
            const now = Math.hypot(x[3 * a] - x[3 * b], x[3 * a + 1] - x[3 * b + 1], x[3 * a + 2] - x[3 * b + 2]);
            const then = Math.hypot(y[3 * a] - y[3 * b], y[3 * a + 1] - y[3 * b + 1], y[3 * a + 2] - y[3 * b + 2]);
            const share = then > 0 ? now / then - 1 : 0;
            if (share > most[a]) most[a] = share;
            if (share > most[b]) most[b] = share;
        }
        return most;
    }

    // The mean over the triangles of each vertex.
    function meanOfTriangles(mesh, values) {
        const sums = new Float32Array(mesh.positions.length / 3), counts = new Float32Array(sums.length);
        mesh.triangles.forEach((vertex, corner) => {
            sums[vertex] += values[(corner / 3) | 0];
            counts[vertex]++;
        });
        return sums.map((sum, vertex) => sum / (counts[vertex] || 1));
    }

    function colourCloth(of, mesh, first, choice) {
        const { colours, source, triangleOf } = of;
        const swatch = (colour) => `rgb(${colour.map(Math.round).join(",")})`;
        const array = mesh.arrays.find((array) => array.name === choice);
        if (choice === STRETCH && first && first.positions.length === mesh.positions.length) {
            return colourRamp(of, stretch(mesh, first), "", true);
        }
        if (array && !array.whole) {
            const values = array.of_triangles ? meanOfTriangles(mesh, array.values) : array.values;
            return colourRamp(of, values, WORDS[array.name] || "", false);
        }
        const seen = new Set();
        for (let k = 0; k < source.length; k++) {
            let colour = CLOTH;
            if (array) {
                const value = array.values[array.of_triangles ? triangleOf[k] : source[k]];
                colour = APART[((value % APART.length) + APART.length) % APART.length];
                seen.add(value);
            }
            colours[4 * k] = colour[0]; colours[4 * k + 1] = colour[1]; colours[4 * k + 2] = colour[2];
        }
        const values = [...seen].sort((a, b) => a - b);
        const text = values.slice(0, APART.length).map((value) => ({
            colour: swatch(APART[((value % APART.length) + APART.length) % APART.length]),
            text: String(value),
        }));
        if (values.length > APART.length) text.push({ text: `… ${values.length} in all` });
        return text;
    }

    function colourRamp({ colours, source }, values, unit, percent) {
        let low = Infinity, high = -Infinity;
        for (const value of values) {
            if (value < low) low = value;
            if (value > high) high = value;
        }
        if (percent) low = Math.min(low, 0);
        const span = high - low || 1;
        for (let k = 0; k < source.length; k++) ramp((values[source[k]] - low) / span, colours, 4 * k);
        const number = (value) => (percent ? `${(100 * value).toPrecision(3)} %` : `${value.toPrecision(3)} ${unit}`);
        return [{ text: number(low) }, { ramp: true }, { text: number(high) }];
    }

    function tellLegend(parts) {
        const legend = element("legend");
        legend.replaceChildren(...parts.map((part) => {
            const span = document.createElement("span");
            if (part.ramp) {
                span.className = "ramp";
                span.style.background = `linear-gradient(to right, ${RAMP.map((c) => `rgb(${c.join(",")})`).join(",")})`;
            } else if (part.colour) {
                const swatch = document.createElement("span");
                swatch.className = "swatch";
                swatch.style.background = part.colour;
                span.append(swatch);
            }
            if (part.text) span.append(part.text);
            return span;
        }));
    }

    function offerColours(mesh) {
        const select = element("colour");
        const names = [PLAIN, STRETCH, ...new Set(mesh.arrays.map((array) => array.name))];
        if ([...select.options].map((option) => option.value).join() === names.join()) return;
        const before = select.value;
        select.replaceChildren(...names.map((name) => new Option(name, name)));
        select.value = names.includes(before) ? before : PLAIN;
    }

    // --- the camera ---

    const camera = { yaw: -0.7, pitch: 0.45, distance: 2, centre: [0, 0, 0] };

    function showAll() {
        if (!shown) return;
        const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
        const x = shown.meshes[0].positions;
        for (let k = 0; k < x.length; k++) {
            low[k % 3] = Math.min(low[k % 3], x[k]);
            high[k % 3] = Math.max(high[k % 3], x[k]);
        }
        camera.centre = low.map((l, k) => (l + high[k]) / 2);
        camera.distance = 1.2 * Math.hypot(...low.map((l, k) => high[k] - l)) || 1;
        wanted = true;
    }

    // Directions of the camera: to the right, up, and towards it.
    function axes() {
        const [cy, sy, cp, sp] = [Math.cos(camera.yaw), Math.sin(camera.yaw), Math.cos(camera.pitch), Math.sin(camera.pitch)];
        return [[cy, sy, 0], [-sp * sy, sp * cy, cp], [cp * sy, -cp * cy, sp]];
    }

    function matrix(width, height) {
        const [right, up, back] = axes();
        const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        const eye = camera.centre.map((c, k) => c + camera.distance * back[k]);
        const near = camera.distance / 30, far = camera.distance * 30;
        const f = 1 / Math.tan(0.35), a = (far + near) / (near - far), b = (2 * far * near) / (near - far);
        const rows = [right.map((v) => (v * f * height) / width), up.map((v) => v * f), back];
        const moved = [-dot(right, eye) * f * height / width, -dot(up, eye) * f, -dot(back, eye)];
        const columns = [];
        for (let k = 0; k < 3; k++) columns.push(rows[0][k], rows[1][k], a * rows[2][k], -rows[2][k]);
        columns.push(moved[0], moved[1], a * moved[2] + b, -moved[2]);
        return new Float32Array(columns);
    }

    // How long a drawing took of late, in ms, and whether drawings are coarse for it: only while
    // something moves.
    const SLOW = 50;
    let late = 0;
    let coarse = false;

    function paintScene() {
        const scale = Math.min(window.devicePixelRatio || 1, 2) * (coarse ? 0.5 : 1);
        const width = Math.max(1, Math.round(canvas.clientWidth * scale));
        const height = Math.max(1, Math.round(canvas.clientHeight * scale));
        if (canvas.width !== width || canvas.height !== height) {
            canvas.width = width;
            canvas.height = height;
        }
        gl.viewport(0, 0, width, height);
        const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
        gl.clearColor(...(dark ? [0.13, 0.13, 0.13] : [0.96, 0.96, 0.95]), 1);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
        if (!shown) return;
        gl.enable(gl.DEPTH_TEST);
        gl.enable(gl.POLYGON_OFFSET_FILL);
        gl.polygonOffset(1, 2);
        gl.useProgram(program);
        gl.uniformMatrix4fv(atView, false, matrix(width, height));
        const [right, up, back] = axes();
        const light = back.map((v, k) => 0.8 * v + 0.3 * right[k] + 0.5 * up[k]);
        const length = Math.hypot(...light);
        gl.uniform3fv(atLight, light.map((v) => v / length));
        const withBodies = element("bodies").checked;
        shown.meshes.forEach((_, k) => {
            if (k === 0 || withBodies) drawn[k].draw(k === 0 && element("edges").checked);
        });
    }

    // --- frames ---

    function show(number, frame) {
        const first = kept.get(0);
        frame.meshes.forEach((mesh, k) => {
            const isNew = !drawn[k];
            if (isNew) drawn[k] = new Drawn();
            drawn[k].shape(mesh);
            drawn[k].place(mesh);
        });
        const begins = shown === null;
        shown = frame;
        weftView.frame = number;
        offerColours(frame.meshes[0]);
        paintColours(first);
        element("scrub").value = number;
        const more = run.exit === null && !embedded ? ", goes on" : "";
        element("where").value = `frame ${number + 1} of ${run.times.length}${more}   ${frame.time.toFixed(3)} s`;
        if (begins) showAll();
        wanted = true;
        say("");
    }

    function paintColours(first = kept.get(0)) {
        if (!shown) return;
        shown.meshes.forEach((mesh, k) => {
            if (k === 0) {
                tellLegend(colourCloth(drawn[0], mesh, first && first.meshes[0], element("colour").value));
            } else {
                for (let v = 0; v < drawn[k].source.length; v++) drawn[k].colours.set(BODY, 4 * v);
            }
            drawn[k].paint();
        });
        wanted = true;
    }

    let wantedFrame = -1;
    function go(number) {
        const count = run.times.length;
        if (count === 0) return;
        wantedFrame = Math.min(Math.max(number, 0), count - 1);
        const target = wantedFrame;
        const show_it = (frame) => {
            if (target === wantedFrame) show(target, frame);
        };
        frameOf(target).then(show_it, (error) => say(String(error.message || error)));
    }

    // --- time ---

    let wanted = true;
    let playedAt = 0;
    let simulated = 0;
    let before = 0;
    function play(on) {
        weftView.playing = on;
        element("play").textContent = on ? "Pause" : "Play";
        if (!on) return;
        if (weftView.frame >= run.times.length - 1) go(0);
        playedAt = 0;
        before = 0;
        weftView.stall = 0;
        weftView.drawn = 0;
    }

    // The frame that is due, if it is another one: the latest that is here.
    function advance(now) {
        const count = run.times.length;
        const at = weftView.frame;
        for (let k = 1; k <= AHEAD && at + k < count; k++) frameOf(at + k).catch(() => {});
        if (at >= count - 1) {
            if (run.exit !== null || embedded) play(false);
            playedAt = 0;
            return;
        }
        const speed = Number(element("speed").value);
        if (playedAt === 0) {
            playedAt = now;
            simulated = run.times[Math.max(at, 0)];
        }
        let due = at + 1;
        if (speed > 0) {
            const time = simulated + (speed * (now - playedAt)) / 1000;
            due = at;
            while (due + 1 < count && run.times[due + 1] <= time) due++;
        }
        let here = due;
        while (here > at && !kept.has(here)) here--;
        if (here > at) {
            wantedFrame = here;
            show(here, kept.get(here));
        } else if (due > at + 1) {
            // It is late: time waits for frames.
            playedAt = 0;
        }
    }

    let tickedAt = 0;
    let sized = "";
    function tick(now) {
        const gap = now - tickedAt;
        tickedAt = now;
        if (weftView.playing) {
            advance(now);
            if (before) weftView.stall = Math.max(weftView.stall, now - before);
            before = now;
        }
        const size = `${canvas.clientWidth} ${canvas.clientHeight} ${window.devicePixelRatio}`;
        if (wanted || size !== sized) {
            if (late > 0) late += 0.3 * (gap - late);
            else late = Math.min(gap, SLOW);
            coarse = late > SLOW;
            sized = size;
            wanted = false;
            paintScene();
            weftView.drawn++;
        } else if (!weftView.playing) {
            late = 0;
            if (coarse) {
                coarse = false;
                paintScene();
            }
        }
        requestAnimationFrame(tick);
    }

    async function follow() {
        try {
            const now = await look();
            const atEnd = weftView.frame >= run.times.length - 1;
            // A run that began anew has other frames.
            const same = run.times.every((time, k) => now.times[k] === time);
            if (!same) {
                kept.clear();
                keptBytes = 0;
            }
            const more = now.times.length !== run.times.length || !same;
            run = now;
            weftView.frames = run.times.length;
            element("name").textContent = run.name;
            document.title = `${run.name} - weft view`;
            element("scrub").max = Math.max(0, run.times.length - 1);
            if (run.times.length === 0) {
                say(run.exit === null ? "The run has written no frame yet." : "The run has written no frames: output.frames is false.");
            } else if (weftView.frame < 0) {
                await frameOf(0);
                go(0);
            } else if (more && atEnd && element("follow").checked && !weftView.playing) {
                go(run.times.length - 1);
            }
        } catch (error) {
            say(String(error.message || error));
        }
        weftView.ready = true;
        if (!embedded && run.exit === null) setTimeout(follow, 1000);
    }

    // --- hands ---

    let drag = null;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
        drag = { x: event.clientX, y: event.clientY, moves: event.button === 2 || event.shiftKey };
        canvas.setPointerCapture(event.pointerId);
        canvas.focus();
    });
    canvas.addEventListener("pointermove", (event) => {
        if (!drag) return;
        const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
        drag.x = event.clientX;
        drag.y = event.clientY;
        if (drag.moves) {
            const [right, up] = axes();
            const scale = (0.73 * camera.distance) / canvas.clientHeight;
            camera.centre = camera.centre.map((c, k) => c - scale * (dx * right[k] - dy * up[k]));
        } else {
            camera.yaw -= 0.008 * dx;
            camera.pitch = Math.min(Math.max(camera.pitch + 0.008 * dy, -1.57), 1.57);
        }
        wanted = true;
    });
    const drop = () => { drag = null; };
    canvas.addEventListener("pointerup", drop);
    canvas.addEventListener("pointercancel", drop);
    canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        camera.distance *= Math.exp(0.001 * event.deltaY);
        wanted = true;
    }, { passive: false });
    document.addEventListener("keydown", (event) => {
        if (["SELECT", "INPUT", "BUTTON"].includes(event.target.tagName)) return;
        if (event.key === " ") play(!weftView.playing);
        else if (event.key === "ArrowRight") go(weftView.frame + 1);
        else if (event.key === "ArrowLeft") go(weftView.frame - 1);
        else if (event.key === "Home") showAll();
        else return;
        event.preventDefault();
    });
    element("play").addEventListener("click", () => play(!weftView.playing));
    element("scrub").addEventListener("input", (event) => {
        play(false);
        go(Number(event.target.value));
    });
    element("colour").addEventListener("change", () => paintColours());
    for (const id of ["bodies", "edges"]) element(id).addEventListener("change", () => { wanted = true; });
    element("speed").addEventListener("change", () => { playedAt = 0; });

    weftView.camera = camera;
    weftView.play = play;
    weftView.go = go;
    // The pixels that are drawn now, for tests.
    weftView.pixels = () => {
        paintScene();
        const all = new Uint8Array(4 * canvas.width * canvas.height);
        gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, all);
        return all;
    };
    follow();
    requestAnimationFrame(tick);
})();
