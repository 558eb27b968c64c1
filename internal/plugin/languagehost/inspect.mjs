// Node 20.20 loops until its memory ends when it colours an error whose stack has a frame like
// node_modules/@scope/file.ts: the name of a package is looked for behind the scope, and there is none. The source maps of
// @pulumi/pulumi give such frames to whatever a program throws. Errors with such frames are printed without colours.
import util from "node:util";

const frame = /node_modules[\\/]@[^\\/\n]+[\\/][^\\/\n]+$/m;

util.inspect = new Proxy(util.inspect, {
    apply(inspect, self, [value, options, ...rest]) {
        if (options?.colors && frame.test(String(value?.stack))) {
            options = { ...options, colors: false };
        }
        return Reflect.apply(inspect, self, [value, options, ...rest]);
    },
});
