import * as pulumi from "@pulumi/pulumi";

/** What the program says about a file. */
interface FileArgs {
    path: pulumi.Input<string>;
    text: pulumi.Input<string>;
}

interface FileInputs {
    path: string;
    text: string;
}

/**
 * The provider of files. It is part of the program: its code goes into the state with each file, so that a file can be
 * deleted when the program has long forgotten it.
 */
const files: pulumi.dynamic.ResourceProvider = {
    async check(_olds: FileInputs, news: FileInputs) {
        const failures = require("path").isAbsolute(news.path) ? [] : [{ property: "path", reason: "must be an absolute path" }];
        return { inputs: news, failures };
    },

    async diff(_id: string, olds: FileInputs, news: FileInputs) {
        const moved = olds.path !== news.path;
        return { changes: moved || olds.text !== news.text, replaces: moved ? ["path"] : [] };
    },

    async create(inputs: FileInputs) {
        const fs = require("fs/promises");
        await fs.mkdir(require("path").dirname(inputs.path), { recursive: true });
        await fs.writeFile(inputs.path, inputs.text);
        return { id: inputs.path, outs: inputs };
    },

    async update(_id: string, _olds: FileInputs, news: FileInputs) {
        await require("fs/promises").writeFile(news.path, news.text);
        return { outs: news };
    },

    async read(id: string, props: FileInputs) {
        try {
            const text = await require("fs/promises").readFile(id, "utf8");
            return { id, props: { ...props, path: id, text } };
        } catch (e: any) {
            if (e.code === "ENOENT") {
                return { id: "", props: undefined as any }; // it is gone
            }
            throw e;
        }
    },

    async delete(id: string) {
        await require("fs/promises").rm(id, { force: true });
    },
};

/** A text file on the machine that the program runs on. */
export class File extends pulumi.dynamic.Resource {
    declare readonly path: pulumi.Output<string>;
    declare readonly text: pulumi.Output<string>;

    constructor(name: string, args: FileArgs, opts?: pulumi.CustomResourceOptions) {
        super(files, name, { ...args }, opts);
    }
}
